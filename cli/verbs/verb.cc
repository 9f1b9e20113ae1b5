#include "cli/verbs/verb.h"

#include <charconv>
#include <cmath>

#include "base/result.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "json/parse.h"

namespace attune::cli {
namespace {

// Absent where there is no word.
Result<std::optional<int64_t>> ReadSizeLimit(const std::string& flag, const std::string& word) {
  if (word.empty()) return std::optional<int64_t>();
  const std::optional<int64_t> bytes = word == "0" ? 0 : ParseBytes(word);
  if (bytes.has_value()) return bytes;
  return Error{ErrorCode::kInvalid,
               flag + ": `" + word + "` is not a size; write 512MiB or 16GiB, or 0 for no limit"};
}

CLI::Validator NumberThatIs(const std::string& what, const std::string& name,
                            bool (*is_good)(double)) {
  return CLI::Validator(
      [what, is_good](std::string& word) {
        double value = 0;
        const bool good =
            CLI::detail::lexical_cast(word, value) && std::isfinite(value) && is_good(value);
        return good ? std::string() : word + " is not " + what;
      },
      name);
}

}  // namespace

CLI::Validator PositiveNumber() {
  return NumberThatIs("a positive number", "POSITIVE", [](double value) { return value > 0; });
}

CLI::Validator NonNegativeNumber() {
  return NumberThatIs("a number from 0 on", "NONNEGATIVE", [](double value) { return value >= 0; });
}

void OutputFlags::AddTo(CLI::App& verb) {
  std::vector<std::string> formats = {"table", "json"};
  if (yaml) formats.push_back("yaml");
  if (!fixed) {
    verb.add_option("-o,--output", format,
                    yaml ? "table, yaml, or json as the server writes it"
                         : "table, or json as the server writes it")
        ->check(CLI::IsMember(formats))
        ->type_name("FORMAT")
        ->capture_default_str();
  }
  verb.add_flag("--no-color", no_color, "no colours (so does NO_COLOR in the environment)");
}

void OutputFlags::AddJson(CLI::App& verb) {
  verb.add_flag_callback(
      "--json", [this] { format = "json"; }, "short for -o json");
}

void OutputFlags::Apply(Console& console) const {
  if (!no_color) return;
  console.out.DisableColours();
  console.err.DisableColours();
}

void ClientFlags::AddTo(CLI::App& verb) {
  verb.add_option("--server", server.server, "the server: URL or HOST:PORT")
      ->envname("ATTUNE_SERVER")
      ->type_name("URL");
  verb.add_option("--token-file", server.token_file,
                  "file with the server's token (or ATTUNE_TOKEN)")
      ->type_name("FILE");
  verb.add_option("--data-dir", server.data_dir, "data folder whose server is meant")
      ->type_name("DIR")
      ->capture_default_str();
  output.AddTo(verb);
}

void SweepNameFlags::AddTo(CLI::App& verb) {
  verb.add_option("SWEEP", id, "such as s1")->required();
  ClientFlags::AddTo(verb);
}

void SweepOrNewestFlags::AddTo(CLI::App& verb) {
  verb.add_option("SWEEP", id, "such as s1; the newest when absent");
  ClientFlags::AddTo(verb);
}

void TrialNameFlags::AddTo(CLI::App& verb) {
  verb.add_option("TRIAL", trial, "SWEEP/NUMBER, such as s1/17")->required()->expected(1, 2);
  ClientFlags::AddTo(verb);
}

void AddInterface(CLI::App& verb, std::string& interface) {
  verb.add_option("--interface", interface,
                  "at which ranks of other hosts reach this one, or its address; by the route to "
                  "the server when absent")
      ->type_name("NAME");
}

void AddSharedData(CLI::App& verb, bool& shared_data) {
  verb.add_flag("--shared-data", shared_data,
                "let other users of this machine read the data folder, as far as the umask allows; "
                "otherwise only you can");
}

void AddLabels(CLI::App& verb, std::vector<std::string>& words) {
  verb.add_option("--label", words,
                  "what resources.requires of sweep files may ask for, such as gpu=h100; again for "
                  "each")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void HostLimitFlags::AddTo(CLI::App& verb) {
  verb.add_option(
          "--min-free-disk", disk,
          "of the data folder's disk: nothing more starts here while less is free; 1GiB, or "
          "2 % of it if that is less, when absent; 0: no limit")
      ->type_name("SIZE");
  verb.add_option("--min-free-memory", memory,
                  "the same, of memory; 256MiB, or 2 % of it if that is less, when absent")
      ->type_name("SIZE");
  verb.add_option("--max-rank-log", rank_log,
                  "what a rank's log may take of the disk: of a longer one the beginning and the "
                  "end stay; 64MiB when absent; 0: no limit")
      ->type_name("SIZE");
}

Result<HostLimits> HostLimitFlags::Read() const {
  const Result<std::optional<int64_t>> disk_bytes = ReadSizeLimit("--min-free-disk", disk);
  if (!disk_bytes.ok()) return disk_bytes.error();
  const Result<std::optional<int64_t>> memory_bytes = ReadSizeLimit("--min-free-memory", memory);
  if (!memory_bytes.ok()) return memory_bytes.error();
  const Result<std::optional<int64_t>> log_bytes = ReadSizeLimit("--max-rank-log", rank_log);
  if (!log_bytes.ok()) return log_bytes.error();
  if (log_bytes->value_or(0) > 0 && **log_bytes < kRankLogBytesMin)
    return Error{ErrorCode::kInvalid, "--max-rank-log: " + rank_log +
                                          " is below 1MiB; raise it, or give 0 for no limit"};
  return HostLimits{
      .disk_bytes = *disk_bytes, .memory_bytes = *memory_bytes, .rank_log_bytes = *log_bytes};
}

std::string NamesOfExecutorFlags(const std::string& interface,
                                 const std::vector<std::string>& labels,
                                 const HostLimitFlags& limits) {
  std::vector<std::string> names;
  if (!interface.empty()) names.push_back("--interface");
  if (!labels.empty()) names.push_back("--label");
  if (!limits.disk.empty()) names.push_back("--min-free-disk");
  if (!limits.memory.empty()) names.push_back("--min-free-memory");
  if (!limits.rank_log.empty()) names.push_back("--max-rank-log");
  return JoinWithCommas(names);
}

Result<Labels> ReadLabels(const std::vector<std::string>& words) {
  Labels labels;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return Error{ErrorCode::kInvalid, "--label: `" + word + "` is not NAME=VALUE"};
    const auto [label, fresh] = labels.emplace(word.substr(0, equals), word.substr(equals + 1));
    if (!fresh)
      return Error{ErrorCode::kInvalid, "--label: " + label->first +
                                            " is there twice; an executor "
                                            "has one value of each label"};
  }
  if (const Status checked = CheckLabels(labels); !checked.ok())
    return Error{ErrorCode::kInvalid, "--label: " + checked.error().message};
  return labels;
}

void PrintWarnings(const rest::SweepDetail& sweep, Console& console) {
  for (const std::string& warning : sweep.warnings.value_or(std::vector<std::string>()))
    console.err.Print("warning: " + Clean(warning));
}

ExitCode Fail(Console& console, const Error& error) {
  console.err.Print("attune: " + error.message);
  return ExitCodeOf(error.code);
}

namespace {

// JSON's numbers, booleans and quoted texts, and numbers as a shell writes them: .3, 1., +5.
Json ValueOf(const std::string& text) {
  const bool has_plus = text.starts_with('+') && text.size() > 1 && text[1] != '-';
  const std::string number = has_plus ? text.substr(1) : text;
  Json value = ParseJson<Json>(number);
  if (has_plus ? value.is_number() : value.is_primitive() && !value.is_null()) return value;
  const char* const end = number.data() + number.size();
  double real = 0;
  const auto [rest, error] = std::from_chars(number.data(), end, real);
  return error == std::errc() && rest == end && std::isfinite(real) ? Json(real) : Json(text);
}

}  // namespace

Result<Json> ReadAssignments(const std::vector<std::string>& words, const std::string& flag) {
  Json values = Json::object();
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::kInvalid, flag + ": `" + word + "` is not NAME=VALUE"};
    }
    const std::string name = word.substr(0, equals);
    if (values.contains(name))
      return Error{ErrorCode::kInvalid, flag + ": " + name + " is given twice; remove one of them"};
    values[name] = ValueOf(word.substr(equals + 1));
  }
  return values;
}

void AddSweepFile(CLI::App& verb, std::string& file) {
  const CLI::Option* const option = verb.add_option("-f,--file,FILE", file, "the sweep file");
  verb.parse_complete_callback([option] {
    if (option->count() == 0) throw CLI::RequiredError("FILE");
  });
}

Result<Endpoint> ServerOf(ServerChoice choice) {
  if (const char* token = std::getenv("ATTUNE_TOKEN"); token != nullptr) choice.token = token;
  return FindServer(choice);
}

ExitCode WithServer(const ClientFlags& flags, Console& console,
                    const std::function<ExitCode(Api&)>& work) {
  flags.output.Apply(console);
  Result<Endpoint> endpoint = ServerOf(flags.server);
  if (!endpoint.ok()) return Fail(console, endpoint.error());
  Api api(*std::move(endpoint));
  return work(api);
}

Result<std::string> SweepOrNewest(Api& api, const std::string& id) {
  if (!id.empty()) return id;
  return api.NewestSweep();
}

}  // namespace attune::cli

#include "cli/commands/command.h"

#include <charconv>
#include <cmath>

#include "base/result.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "json/parse.h"

namespace attune::cli {
namespace {

// nullopt if `word` is empty, for the default.
Result<std::optional<int64_t>> ReadSizeLimit(const std::string& flag, const std::string& word) {
  if (word.empty()) return std::optional<int64_t>();
  const std::optional<int64_t> bytes = word == "0" ? 0 : ParseBytes(word);
  if (bytes.has_value()) return bytes;
  return Error{ErrorCode::kInvalid,
               flag + ": `" + word + "` is not a size; write 512MiB or 16GiB, or 0 for no limit"};
}

CLI::Validator NumberCheck(const std::string& what, const std::string& name,
                           bool (*is_good)(double)) {
  return CLI::Validator(
      [what, is_good](std::string& word) {
        double value = 0;
        const bool is_valid =
            CLI::detail::lexical_cast(word, value) && std::isfinite(value) && is_good(value);
        return is_valid ? std::string() : word + " is not " + what;
      },
      name);
}

}  // namespace

CLI::Validator PositiveNumber() {
  return NumberCheck("a positive number", "POSITIVE", [](double value) { return value > 0; });
}

CLI::Validator NonNegativeNumber() {
  return NumberCheck("0 or a positive number", "NONNEGATIVE",
                     [](double value) { return value >= 0; });
}

void OutputFlags::AddTo(CLI::App& command) {
  std::vector<std::string> formats = {"table", "json"};
  if (yaml) formats.push_back("yaml");
  if (!fixed) {
    command.add_option("-o,--output", format, "Output format")
        ->check(CLI::IsMember(formats))
        ->type_name("FORMAT")
        ->capture_default_str();
  }
  command.add_flag("--no-color", no_color, "Print no colors (also: NO_COLOR in the environment)");
}

void OutputFlags::AddJson(CLI::App& command) {
  command.add_flag_callback(
      "--json", [this] { format = "json"; }, "Same as -o json");
}

void OutputFlags::Apply(Console& console) const {
  if (!no_color) return;
  console.out.DisableColours();
  console.err.DisableColours();
}

void ClientFlags::AddTo(CLI::App& command) {
  command.add_option("--server", server.server, "Server to use, as URL or HOST:PORT")
      ->envname("ATTUNE_SERVER")
      ->type_name("URL");
  command
      .add_option("--token-file", server.token_file,
                  "File with the token (default: ATTUNE_TOKEN, or the data folder's token)")
      ->type_name("FILE");
  command.add_option("--data-dir", server.data_dir, "Use the server that runs on this data folder")
      ->type_name("DIR")
      ->capture_default_str();
  output.AddTo(command);
}

void SweepNameFlags::AddTo(CLI::App& command) {
  command.add_option("SWEEP", id, "Sweep, such as s1")->required();
  ClientFlags::AddTo(command);
}

void SweepOrNewestFlags::AddTo(CLI::App& command) {
  command.add_option("SWEEP", id, "Sweep, such as s1 (default: the newest)");
  ClientFlags::AddTo(command);
}

void TrialNameFlags::AddTo(CLI::App& command) {
  command.add_option("TRIAL", trial, "Trial, such as s1/17")->required()->expected(1, 2);
  ClientFlags::AddTo(command);
}

void AddInterface(CLI::App& command, std::string& interface) {
  command
      .add_option("--interface", interface,
                  "Interface or address that ranks on other hosts connect to (default: from the "
                  "route to the server)")
      ->type_name("NAME");
}

void AddSharedData(CLI::App& command, bool& shared_data) {
  command.add_flag("--shared-data", shared_data,
                   "Let other users of this host read the data folder, as the umask allows");
}

void AddLabels(CLI::App& command, std::vector<std::string>& words) {
  command
      .add_option("--label", words,
                  "Label that resources.requires can select, such as gpu=h100 (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void HostLimitFlags::AddTo(CLI::App& command) {
  command
      .add_option("--min-free-disk", disk,
                  "Start nothing while less disk space is free; 0: no limit (default: 1GiB, or 2 % "
                  "of the disk if less)")
      ->type_name("SIZE");
  command
      .add_option("--min-free-memory", memory,
                  "Start nothing while less memory is free; 0: no limit (default: 256MiB, or 2 % "
                  "of memory if less)")
      ->type_name("SIZE");
  command
      .add_option("--max-rank-log", rank_log,
                  "Maximum size of a rank's log; drops the middle of longer logs; 0: no limit "
                  "(default: 64MiB)")
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
    return Error{ErrorCode::kInvalid,
                 "--max-rank-log: " + rank_log + " is below 1MiB; raise it, or use 0 for no limit"};
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
      return Error{ErrorCode::kInvalid,
                   "--label: `" + word + "` is not NAME=VALUE; write it as gpu=h100"};
    const auto [label, inserted] = labels.emplace(word.substr(0, equals), word.substr(equals + 1));
    if (!inserted)
      return Error{ErrorCode::kInvalid,
                   "--label: " + label->first + " is given twice; give each label one value"};
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

// Numbers, booleans and quoted strings of JSON keep their type, and so do numbers such as .3, 1.
// and +5. Everything else is a string.
Json ParseValue(const std::string& text) {
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
    values[name] = ParseValue(word.substr(equals + 1));
  }
  return values;
}

void AddSweepFile(CLI::App& command, std::string& file) {
  const CLI::Option* const option = command.add_option("-f,--file,FILE", file, "Sweep file");
  command.parse_complete_callback([option] {
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

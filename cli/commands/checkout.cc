#include "cli/commands/checkout.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/client/api.h"
#include "cli/commands/checkpoint_get.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "code/tree.h"
#include "core/log/fixed_code.h"
#include "core/state/state.h"
#include "sweepfile/codec.h"
#include "sweepfile/sweepfile.h"
#include "system/files.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kOwnFolder[] = "attune-trial";  // next to the code, with files of this command
constexpr mode_t kForTheUser = 0644;

struct CheckoutFlags : ClientFlags {
  std::string trial;
  std::string folder;

  void AddTo(CLI::App& command) {
    command.add_option("TRIAL", trial, "Trial, such as s1/17")->required();
    command.add_option("DIR", folder, "New folder")->required();
    ClientFlags::AddTo(command);
  }
};

// Reads a sweep file that the server has made.
Result<SweepSpec> ReadMade(const std::string& text) {
  sweepfile::Parsed parsed = sweepfile::ParseSweep(text, {.algorithms = &AllAlgorithms()});
  if (parsed.spec) return *std::move(parsed.spec);
  return Error{ErrorCode::kInternal, "the server returned an invalid sweep file: " +
                                         sweepfile::Sentence(parsed.faults.front())};
}

// A sweep file in the folder kOwnFolder that trains the trial again, with the code in the folder
// above. `schedule` is the server's file with the configurations of the trial.
std::string RepeatingFile(SweepSpec schedule, const SweepSpec& sweep, const TrialName& trial) {
  schedule.name = trial.sweep + "-" + std::to_string(trial.number);
  schedule.trial_seed = SeedOf(sweep, TrialNumber(static_cast<uint32_t>(trial.number)));
  if (auto& code = schedule.program.code) {
    FixCode(schedule, "");
    code->path = "..";
    code->include.emplace_back("**");  // although git may ignore files of the new folder
    code->exclude.push_back("/" + std::string(kOwnFolder) + "/");
    code->commit.clear();
    code->dirty = false;
  }
  return sweepfile::ResolvedYaml(schedule);
}

// Downloads the code into the new folder `out`.
Status FetchCode(Api& api, const std::string& digest, const fs::path& out) {
  const fs::path copy = out.parent_path() / ("." + out.filename().string() + ".code");
  const auto read = [&](const std::string& part, uint64_t offset,
                        std::string) -> Result<checkpoints::Piece> {
    return api.CodePiece(digest, part, offset);
  };
  const checkpoints::Downloaded done =
      code::DownloadCopy({.name = "the code " + digest, .digest = digest, .read = read}, copy, 0);
  code::RemoveCopy(done.part);
  if (!done.status.ok()) return done.status;
  const Status made = code::MakeWorkFolder(copy, out, "", true);
  code::RemoveCopy(copy);
  return made;
}

// Writes the files of the trial to the new folder `out`.
Status WriteFiles(const rest::TrialDetail& trial, const Json& document, const Json& schedule,
                  const std::string& sweep_file, const fs::path& out) {
  std::error_code failed;
  fs::create_directories(out, failed);
  if (failed)
    return Error{ErrorCode::kUnavailable, "cannot make " + out.string() + ": " + failed.message()};
  const std::pair<const char*, std::string> files[] = {
      {"sweep.yaml", sweep_file},
      {"config.json", Dump(trial.config, 2) + "\n"},
      {"trial.json", Dump(document, 2) + "\n"},
      {"schedule.json", Dump(schedule, 2) + "\n"}};
  for (const auto& [file, text] : files) {
    if (Status written = WriteWhole(out / file, text, kForTheUser); !written.ok()) return written;
  }
  return {};
}

// Writes with which versions the newest attempt ran, unless the trial has not run.
Status WriteEnvironment(const TrialName& trial, const fs::path& out, Api& api) {
  const auto environment = api.Environment(trial);
  if (environment.ok())
    return WriteWhole(out / "environment.json", Dump(environment->document, 2) + "\n", kForTheUser);
  return environment.error().code == ErrorCode::kNotFound ? Status() : environment.error();
}

// Downloads the checkpoints from which the parts of the training began. A message lists those that
// were dropped.
Status FetchCheckpoints(const rest::Schedule& schedule, const fs::path& out, Console& console,
                        Api& api) {
  for (const rest::SchedulePart& part : schedule.schedule) {
    if (!part.checkpoint) continue;
    const Result<CheckpointName> name = CheckpointName::Parse(*part.checkpoint);
    if (!name.ok()) return name.error();
    const fs::path folder = out / (std::to_string(name->trial.number) + "-" + name->name);
    std::error_code failed;
    fs::create_directories(out, failed);
    const Status fetched = DownloadCheckpoint(api, *name, folder);
    if (fetched.ok()) continue;
    if (fetched.error().code != ErrorCode::kNotFound) return fetched;
    console.err.Print("without the checkpoint " + *part.checkpoint + ": " +
                      fetched.error().message);
  }
  return {};
}

ExitCode Checkout(const CheckoutFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse({flags.trial});
  if (!name.ok()) return Fail(console, name.error());
  fs::path out = fs::absolute(flags.folder).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();  // without the slash at its end
  std::error_code failed;
  if (fs::exists(fs::symlink_status(out, failed)))
    return Fail(console, {ErrorCode::kConflict,
                          flags.folder + " already exists; choose another folder, or remove it"});
  const auto trial = api.Trial(*name);
  if (!trial.ok()) return Fail(console, trial.error());
  const auto resolved = api.ResolvedSweep(name->sweep);
  if (!resolved.ok()) return Fail(console, resolved.error());
  const Result<SweepSpec> sweep = ReadMade(Dump(resolved->resolved));
  if (!sweep.ok()) return Fail(console, sweep.error());
  const auto schedule = api.Schedule(*name);
  if (!schedule.ok()) return Fail(console, schedule.error());
  const Result<SweepSpec> repeated = ReadMade(schedule->file);
  if (!repeated.ok()) return Fail(console, repeated.error());

  // The folder appears when everything is in it.
  const fs::path draft = out.parent_path() / ("." + out.filename().string() + ".part");
  fs::remove_all(draft, failed);
  const auto& code = sweep->program.code;
  Status written = code ? FetchCode(api, trial->code, draft) : Status();
  if (written.ok())
    written = WriteFiles(*trial, trial->document, schedule->document.at("schedule"),
                         RepeatingFile(*repeated, *sweep, *name), draft / kOwnFolder);
  if (written.ok()) written = WriteEnvironment(*name, draft / kOwnFolder, api);
  if (written.ok())
    written = FetchCheckpoints(*schedule, draft / kOwnFolder / "checkpoints", console, api);
  if (written.ok()) fs::rename(draft, out, failed);
  if (written.ok() && failed)
    written =
        Error{ErrorCode::kUnavailable, "cannot make " + out.string() + ": " + failed.message()};
  if (!written.ok()) {
    fs::remove_all(draft, failed);
    return Fail(console, written.error());
  }
  if (!code) console.err.Print("the sweep has no code: its program is not in the folder");
  if (schedule->schedule.size() > 1)
    console.err.Print(
        "the weights come from " +
        FormatCount(static_cast<int64_t>(schedule->schedule.size()), "configuration") +
        ", which schedule.json lists");
  console.err.Print("to train it again: `attune run " +
                    (fs::path(flags.folder) / kOwnFolder / "sweep.yaml").string() + '`');
  console.out.Print(flags.folder);
  return ExitCode::kSuccess;
}

}  // namespace

void AddCheckoutCommand(CLI::App& noun, Action& chosen) {
  AddCommand<CheckoutFlags>(noun, chosen, "checkout",
                            "Write the code and the configuration of a trial to a folder",
                            Checkout);
}

}  // namespace attune::cli

#include <set>

#include "base/result.h"
#include "cli/commands/checkpoint_get.h"
#include "cli/commands/command.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"

namespace attune::cli {
namespace {

struct CheckpointPinFlags : ClientFlags {
  std::string name;

  void AddTo(CLI::App& command) {
    command.add_option("CHECKPOINT", name, "Checkpoint TRIAL/ATTEMPT-STEP, such as s1/17/2-900")
        ->required();
    ClientFlags::AddTo(command);
  }
};

struct CheckpointGetFlags : ClientFlags {
  std::string name;  // of a checkpoint, a trial or a sweep
  CheckpointChoice choice;
  std::string out;

  void AddTo(CLI::App& command) {
    command
        .add_option(
            "CHECKPOINT", name,
            "Checkpoint, such as s1/17/2-900; or a trial, for its newest; or a sweep, with --best")
        ->required();
    ClientFlags::AddTo(command);
    command.add_option("--step", choice.step, "Step of the checkpoint")->type_name("N");
    command.add_flag("--best", choice.best, "Checkpoint of the best result");
    command.add_option("--out", out, "New folder (default: such as s1-17-step-900)")
        ->type_name("DIR");
  }
};

struct CheckpointRmFlags : ClientFlags {
  std::string name;
  std::optional<int64_t> step;

  void AddTo(CLI::App& command) {
    command
        .add_option("CHECKPOINT", name, "Checkpoint, such as s1/17/2-900; or a trial, with --step")
        ->required();
    ClientFlags::AddTo(command);
    command.add_option("--step", step, "Step of the checkpoint")->type_name("N");
  }
};

// Why the checkpoint is kept: a user has pinned it, or the server has stored a copy.
std::string KeptText(const rest::SweepCheckpoint& checkpoint) {
  std::string text = checkpoint.pinned ? "pinned" : "";
  if (checkpoint.stored) text += text.empty() ? "stored" : ", stored";
  return text;
}

std::vector<std::string> CheckpointLines(const std::vector<rest::SweepCheckpoint>& checkpoints,
                                         const Style& style, int width) {
  if (checkpoints.empty()) return {"no checkpoints are kept"};
  Table table({{"CHECKPOINT"}, {"BEST", true}, {"SIZE", true}, {"KEPT"}, {"EXECUTOR"}, {"FOLDER"}});
  std::set<int64_t> trials;
  double bytes = 0;
  for (const rest::SweepCheckpoint& checkpoint : checkpoints) {
    const auto size = static_cast<double>(checkpoint.bytes);
    trials.insert(checkpoint.trial);
    bytes += size;
    table.Add({checkpoint.sweep + '/' + std::to_string(checkpoint.trial) + '/' +
                   std::to_string(checkpoint.attempt) + '-' + std::to_string(checkpoint.step),
               FormatOptional(checkpoint.best), FormatBytes(size), KeptText(checkpoint),
               checkpoint.executor, checkpoint.path});
  }
  std::vector<std::string> lines = table.Lines(style, width);
  lines.push_back(FormatCount(std::ssize(checkpoints), "checkpoint") + " of " +
                  FormatCount(std::ssize(trials), "trial") + ", " + FormatBytes(bytes));
  return lines;
}

ExitCode ListCheckpoints(const SweepOrNewestFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto show = [&](const rest::CheckpointList& list) {
    console.out.PrintLines(
        CheckpointLines(list.checkpoints, console.out.style(), console.out.width()));
  };
  return ShowAnswer(flags.output, console, api.Checkpoints(*id), show);
}

ExitCode SetPinned(const CheckpointPinFlags& flags, bool pinned, Console& console, Api& api) {
  const Result<CheckpointName> name = CheckpointName::Parse(flags.name);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console, "checkpoint " + flags.name,
                    api.PinCheckpoint(*name, pinned));
}

ExitCode Pin(const CheckpointPinFlags& flags, Console& console, Api& api) {
  return SetPinned(flags, true, console, api);
}

ExitCode Unpin(const CheckpointPinFlags& flags, Console& console, Api& api) {
  return SetPinned(flags, false, console, api);
}

ExitCode Get(const CheckpointGetFlags& flags, Console& console, Api& api) {
  return GetCheckpoint(flags.name, flags.choice, flags.out, flags.output, console, api);
}

ExitCode Drop(const CheckpointRmFlags& flags, Console& console, Api& api) {
  const Result<CheckpointName> name = NameToDrop(api, flags.name, flags.step);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console, "checkpoint " + TextOf(*name),
                    api.DropCheckpoint(*name));
}

}  // namespace

void AddCheckpointCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("checkpoint", "List, download and manage checkpoints");
  noun.require_subcommand(1);
  AddCommand<SweepOrNewestFlags>(noun, chosen, "list", "List the kept checkpoints of a sweep",
                                 ListCheckpoints);
  AddCommand<CheckpointGetFlags>(noun, chosen, "get", "Download a checkpoint", Get);
  AddCommand<CheckpointRmFlags>(noun, chosen, "rm", "Delete a checkpoint", Drop);
  AddCommand<CheckpointPinFlags>(noun, chosen, "pin", "Keep a checkpoint until it is unpinned",
                                 Pin);
  AddCommand<CheckpointPinFlags>(noun, chosen, "unpin",
                                 "Let the sweep file decide about a checkpoint again", Unpin);
}

}  // namespace attune::cli

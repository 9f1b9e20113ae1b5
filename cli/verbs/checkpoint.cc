#include <set>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/verbs/checkpoint_get.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct CheckpointPinFlags : ClientFlags {
  std::string name;

  void AddTo(CLI::App& verb) {
    verb.add_option("CHECKPOINT", name, "SWEEP/NUMBER/ATTEMPT-STEP, such as s1/17/2-900")
        ->required();
    ClientFlags::AddTo(verb);
  }
};

struct CheckpointGetFlags : ClientFlags {
  std::string name;  // of a checkpoint, a trial, or a sweep
  CheckpointChoice choice;
  std::string out;

  void AddTo(CLI::App& verb) {
    verb.add_option(
            "CHECKPOINT", name,
            "a trial such as s1/17: its newest; s1/17/2-900: that one; with --best also a sweep")
        ->required();
    ClientFlags::AddTo(verb);
    verb.add_option("--step", choice.step, "the one of that step")->type_name("N");
    verb.add_flag("--best", choice.best, "the one of the best result");
    verb.add_option("--out", out, "the folder to make; s1-17-step-900 and the like when absent")
        ->type_name("DIR");
  }
};

struct CheckpointRmFlags : ClientFlags {
  std::string name;
  std::optional<int64_t> step;

  void AddTo(CLI::App& verb) {
    verb.add_option("CHECKPOINT", name, "such as s1/17/2-900, or with --step a trial such as s1/17")
        ->required();
    ClientFlags::AddTo(verb);
    verb.add_option("--step", step, "the one of that step")->type_name("N");
  }
};

// Who keeps it: people pin, the server stores copies.
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

void AddCheckpointVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("checkpoint", "list, fetch and keep checkpoints");
  noun.require_subcommand(1);
  AddVerb<SweepOrNewestFlags>(noun, chosen, "list", "list the checkpoints of a sweep that are kept",
                              ListCheckpoints);
  AddVerb<CheckpointGetFlags>(noun, chosen, "get", "fetch a checkpoint's folder, wherever it lies",
                              Get);
  AddVerb<CheckpointRmFlags>(noun, chosen, "rm", "delete a checkpoint that nothing needs", Drop);
  AddVerb<CheckpointPinFlags>(noun, chosen, "pin",
                              "keep a checkpoint, whatever the sweep file says", Pin);
  AddVerb<CheckpointPinFlags>(noun, chosen, "unpin", "leave a checkpoint to the sweep file again",
                              Unpin);
}

}  // namespace attune::cli

#include <set>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/verbs/checkpoint_get.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct CheckpointFlags : ClientFlags {
  std::string name;  // of a checkpoint, a trial, or a sweep
  CheckpointChoice choice;
  std::string out;
};

// pinned, by a person; stored, by the server as well.
std::string KeptText(const Json& checkpoint) {
  std::string text = At(checkpoint, "pinned") == true ? "pinned" : "";
  if (At(checkpoint, "stored") == true) text += text.empty() ? "stored" : ", stored";
  return text;
}

std::vector<std::string> CheckpointLines(const Json& checkpoints, const Style& style, int width) {
  if (checkpoints.empty()) return {"no checkpoints are kept"};
  Table table({{"CHECKPOINT"}, {"BEST", true}, {"SIZE", true}, {"KEPT"}, {"EXECUTOR"}, {"FOLDER"}});
  std::set<int64_t> trials;
  double bytes = 0;
  for (const Json& checkpoint : checkpoints) {
    const int64_t trial = WholeAt(checkpoint, "trial");
    const double size = NumberOf(At(checkpoint, "bytes")).value_or(0);
    const std::optional<double> best = NumberOf(At(checkpoint, "best"));
    trials.insert(trial);
    bytes += size;
    table.Add({TextAt(checkpoint, "sweep") + '/' + std::to_string(trial) + '/' +
                   std::to_string(WholeAt(checkpoint, "attempt")) + '-' +
                   std::to_string(WholeAt(checkpoint, "step")),
               best.has_value() ? FormatNumber(*best) : "", FormatBytes(size), KeptText(checkpoint),
               TextAt(checkpoint, "executor"), TextAt(checkpoint, "path")});
  }
  std::vector<std::string> lines = table.Lines(style, width);
  lines.push_back(FormatCount(checkpoints.size(), "checkpoint") + " of " +
                  FormatCount(trials.size(), "trial") + ", " + FormatBytes(bytes));
  return lines;
}

ExitCode List(const CheckpointFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.name);
  if (!id.ok()) return Fail(console, id.error());
  const Result<Json> checkpoints = api.Checkpoints(*id);
  if (!checkpoints.ok()) return Fail(console, checkpoints.error());
  if (flags.output.json()) {
    console.out.Print(Dump({{"checkpoints", *checkpoints}}, 2));
  } else {
    console.out.PrintLines(CheckpointLines(*checkpoints, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode SetPinned(const CheckpointFlags& flags, bool pinned, Console& console, Api& api) {
  const Result<CheckpointName> name = CheckpointName::Parse(flags.name);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console, "checkpoint " + flags.name,
                    api.PinCheckpoint(*name, pinned));
}

ExitCode Pin(const CheckpointFlags& flags, Console& console, Api& api) {
  return SetPinned(flags, true, console, api);
}

ExitCode Unpin(const CheckpointFlags& flags, Console& console, Api& api) {
  return SetPinned(flags, false, console, api);
}

ExitCode Get(const CheckpointFlags& flags, Console& console, Api& api) {
  return GetCheckpoint(flags.name, flags.choice, flags.out, flags.output, console, api);
}

ExitCode Drop(const CheckpointFlags& flags, Console& console, Api& api) {
  const Result<CheckpointName> name = NameToDrop(api, flags.name, flags.choice.step);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console, "checkpoint " + TextOf(*name),
                    api.DropCheckpoint(*name));
}

using CheckpointAction = ExitCode (*)(const CheckpointFlags&, Console&, Api&);

// The verb's argument, for the caller to describe, and what it may be told besides.
struct Added {
  CLI::App* verb;
  CLI::Option* argument;
  std::shared_ptr<CheckpointFlags> flags;
};
Added Add(CLI::App& noun, Action& chosen, const char* name, const char* help, const char* argument,
          CheckpointAction action) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<CheckpointFlags>();
  CLI::Option* const option = verb->add_option(argument, flags->name);
  flags->AddTo(*verb);
  verb->callback([flags, action, &chosen] {
    chosen = [flags, action](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return action(*flags, console, api); });
    };
  });
  return {verb, option, flags};
}

void AddStep(const Added& added) {
  added.verb->add_option("--step", added.flags->choice.step, "the one of that step")
      ->type_name("N");
}

}  // namespace

void AddCheckpointVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("checkpoint", "list, fetch and keep checkpoints");
  noun->require_subcommand(1);
  Add(*noun, chosen, "list", "list the checkpoints of a sweep that are kept", "SWEEP", List)
      .argument->description("such as s1; the newest when absent");
  const char* const kName = "SWEEP/NUMBER/ATTEMPT-STEP, such as s1/17/2-900";
  const char* const kOrTrial = "such as s1/17/2-900, or with --step a trial such as s1/17";
  const Added get =
      Add(*noun, chosen, "get", "fetch a checkpoint's folder, wherever it lies", "CHECKPOINT", Get);
  get.argument
      ->description(
          "a trial such as s1/17: its newest; s1/17/2-900: that one; with --best also a "
          "sweep")
      ->required();
  AddStep(get);
  get.verb->add_flag("--best", get.flags->choice.best, "the one of the best result");
  get.verb
      ->add_option("--out", get.flags->out,
                   "the folder to make; s1-17-step-900 and the like when absent")
      ->type_name("DIR");
  const Added rm =
      Add(*noun, chosen, "rm", "delete a checkpoint that nothing needs", "CHECKPOINT", Drop);
  rm.argument->description(kOrTrial)->required();
  AddStep(rm);
  Add(*noun, chosen, "pin", "keep a checkpoint, whatever the sweep file says", "CHECKPOINT", Pin)
      .argument->description(kName)
      ->required();
  Add(*noun, chosen, "unpin", "leave a checkpoint to the sweep file again", "CHECKPOINT", Unpin)
      .argument->description(kName)
      ->required();
}

}  // namespace attune::cli

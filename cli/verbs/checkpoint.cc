#include <set>

#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct CheckpointFlags : ClientFlags {
  std::string name;  // of a checkpoint, or a sweep
};

std::string Counted(size_t count, const std::string& what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::vector<std::string> CheckpointLines(const Json& checkpoints, const Style& style, int width) {
  if (checkpoints.empty()) return {"no checkpoints are kept"};
  Table table(
      {{"CHECKPOINT"}, {"BEST", true}, {"SIZE", true}, {"PINNED"}, {"EXECUTOR"}, {"FOLDER"}});
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
               best.has_value() ? FormatNumber(*best) : "", FormatBytes(size),
               At(checkpoint, "pinned") == true ? "pinned" : "", TextAt(checkpoint, "executor"),
               TextAt(checkpoint, "path")});
  }
  std::vector<std::string> lines = table.Lines(style, width);
  lines.push_back(Counted(checkpoints.size(), "checkpoint") + " of " +
                  Counted(trials.size(), "trial") + ", " + FormatBytes(bytes));
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

using CheckpointAction = ExitCode (*)(const CheckpointFlags&, Console&, Api&);

// The verb, and its argument for the caller to describe.
CLI::Option* Add(CLI::App& noun, Action& chosen, const char* name, const char* help,
                 const char* argument, CheckpointAction action) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<CheckpointFlags>();
  CLI::Option* const option = verb->add_option(argument, flags->name);
  flags->AddTo(*verb);
  verb->callback([flags, action, &chosen] {
    chosen = [flags, action](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return action(*flags, console, api); });
    };
  });
  return option;
}

}  // namespace

void AddCheckpointVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("checkpoint", "list and keep checkpoints");
  noun->require_subcommand(1);
  Add(*noun, chosen, "list", "list the checkpoints of a sweep that are kept", "SWEEP", List)
      ->description("such as s1; the newest when absent");
  const char* const kName = "SWEEP/NUMBER/ATTEMPT-STEP, such as s1/17/2-900";
  Add(*noun, chosen, "pin", "keep a checkpoint, whatever the sweep file says", "CHECKPOINT", Pin)
      ->description(kName)
      ->required();
  Add(*noun, chosen, "unpin", "leave a checkpoint to the sweep file again", "CHECKPOINT", Unpin)
      ->description(kName)
      ->required();
}

}  // namespace attune::cli

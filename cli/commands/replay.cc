#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/settings.h"
#include "cli/views/replay_view.h"

namespace attune::cli {
namespace {

struct ReplayFlags : SweepOrNewestFlags {
  std::string scheduler;
  std::vector<std::string> settings;
  std::optional<int> slots;

  void AddTo(CLI::App& command) {
    command.add_option("--scheduler", scheduler, "Scheduler to replay (default: the sweep's own)")
        ->type_name("NAME");
    command
        .add_option("--set", settings,
                    "Option of the scheduler, such as reduction_factor=3, or limit, such as "
                    "stop.max_trials=50 (repeatable)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command.add_option("--slots", slots, "Workers that run at once (default: as recorded)")
        ->check(CLI::Range(1, kMaxSimulatedSlots))
        ->type_name("N");
    SweepOrNewestFlags::AddTo(command);
    output.AddJson(command);
  }
};

// A key without a dot is an option of the scheduler.
Result<Json> ChangesOf(const ReplayFlags& flags) {
  std::vector<std::string> settings;
  for (const std::string& setting : flags.settings) {
    const bool is_full_key = setting.substr(0, setting.find('=')).find('.') != std::string::npos;
    settings.push_back(is_full_key || setting.starts_with('=') ? setting : "scheduler." + setting);
  }
  Result<Json> changes = PatchOf(settings);
  if (changes.ok() && !flags.scheduler.empty()) (*changes)["scheduler"]["name"] = flags.scheduler;
  return changes;
}

ExitCode Replay(const ReplayFlags& flags, Console& console, Api& api) {
  const Result<Json> changes = ChangesOf(flags);
  if (!changes.ok()) return Fail(console, changes.error());
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto show = [&](const rest::Replay& replay) {
    console.out.PrintLines(ReplaySections(replay, console.out.style(), console.out.width()));
  };
  return ShowAnswer(flags.output, console, api.Replay(*id, *changes, flags.slots), show);
}

}  // namespace

void AddReplayCommand(CLI::App& app, Action& chosen) {
  AddCommand<ReplayFlags>(app, chosen, "replay", "Replay a recorded sweep under another scheduler",
                          Replay);
}

}  // namespace attune::cli

#include "base/result.h"
#include "cli/verbs/settings.h"
#include "cli/verbs/verb.h"
#include "cli/views/replay_view.h"

namespace attune::cli {
namespace {

struct ReplayFlags : SweepOrNewestFlags {
  std::string scheduler;
  std::vector<std::string> settings;
  std::optional<int> slots;

  void AddTo(CLI::App& verb) {
    verb.add_option("--scheduler", scheduler, "another scheduler; its own when absent")
        ->type_name("NAME");
    verb.add_option("--set", settings,
                    "an option of the scheduler, such as reduction_factor=3, or a limit, such as "
                    "stop.max_trials=50")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    verb.add_option("--slots", slots, "workers that run at once; as many as did when absent")
        ->check(CLI::Range(1, kMaxSimulatedSlots))
        ->type_name("N");
    SweepOrNewestFlags::AddTo(verb);
    output.AddJson(verb);
  }
};

// A key without a dot is an option of the scheduler.
Result<Json> ChangesOf(const ReplayFlags& flags) {
  std::vector<std::string> settings;
  for (const std::string& setting : flags.settings) {
    const bool whole = setting.substr(0, setting.find('=')).find('.') != std::string::npos;
    settings.push_back(whole || setting.starts_with('=') ? setting : "scheduler." + setting);
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

void AddReplayVerb(CLI::App& app, Action& chosen) {
  AddVerb<ReplayFlags>(app, chosen, "replay",
                       "what a sweep had been under another scheduler, by what was recorded",
                       Replay);
}

}  // namespace attune::cli

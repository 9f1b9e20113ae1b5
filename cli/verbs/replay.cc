#include "base/result.h"
#include "cli/verbs/settings.h"
#include "cli/verbs/verb.h"
#include "cli/views/replay_view.h"

namespace attune::cli {
namespace {

struct ReplayFlags : ClientFlags {
  std::string sweep;
  std::string scheduler;
  std::vector<std::string> settings;
  std::optional<int> slots;
};

// Keys without a dot are the scheduler's.
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
  const Result<std::string> id = SweepOrNewest(api, flags.sweep);
  if (!id.ok()) return Fail(console, id.error());
  const Result<Json> replay = api.Replay(*id, *changes, flags.slots);
  if (!replay.ok()) return Fail(console, replay.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*replay, 2));
  } else {
    console.out.PrintLines(ReplaySections(*replay, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddReplayVerb(CLI::App& app, Action& chosen) {
  CLI::App* const verb = app.add_subcommand(
      "replay", "what a sweep had been under another scheduler, by what was recorded");
  auto flags = std::make_shared<ReplayFlags>();
  verb->add_option("SWEEP", flags->sweep, "such as s1; the newest when absent");
  verb->add_option("--scheduler", flags->scheduler, "another scheduler; its own when absent")
      ->type_name("NAME");
  verb->add_option("--set", flags->settings,
                   "an option of the scheduler, such as reduction_factor=3, or a limit, such as "
                   "stop.max_trials=50")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--slots", flags->slots, "workers that run at once; as many as did when absent")
      ->check(CLI::Range(1, kMaxSimulatedSlots))
      ->type_name("N");
  flags->AddTo(*verb);
  verb->add_flag_callback(
      "--json", [flags] { flags->output.format = "json"; }, "short for -o json");
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return Replay(*flags, console, api); });
    };
  });
}

}  // namespace attune::cli

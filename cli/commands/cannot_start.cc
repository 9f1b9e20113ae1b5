#include "cli/commands/cannot_start.h"

#include "cli/commands/command.h"
#include "cli/text/width.h"
#include "cli/watch/model.h"

namespace attune::cli {

ExitCode EndUnstartable(Console& console, Api& api, const std::string& id,
                        const std::string& remedy) {
  const auto sweep = api.Sweep(id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  console.err.Print("attune: sweep " + id +
                    " cannot start on this host: " + Clean(sweep->waiting_reason) + "\n" + remedy);
  const rest::TrialCounts& trials = sweep->trials;
  const bool none_has_run = CountEnded(trials) + trials.running + trials.paused == 0;
  if (none_has_run) {
    const auto killed = api.SteerSweep(id, "kill");
    if (!killed.ok()) return Fail(console, killed.error());
    console.err.Print("no trial has run, so the sweep was killed");
  }
  return ExitCode::kSweepFailed;
}

}  // namespace attune::cli

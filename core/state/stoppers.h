#pragma once

#include <optional>
#include <string>

#include "core/log/event.h"
#include "core/state/state.h"

// The limits of a sweep and of its trials (StopPolicy). They are independent of the scheduler.
namespace attune {

// A limit that was reached: its name in the sweep file, and a sentence.
struct Limit {
  std::string rule;
  std::string text;
};

// The first of these limits that the sweep has reached.
std::optional<Limit> LimitReached(const Sweep& sweep, const StopPolicy& stop, Time now);

// When the sweep will reach a limit if nothing else happens; nullopt: never.
std::optional<Time> Deadline(const Sweep& sweep);

// Whether values of the objectives reach every target; false if there is no target.
bool ReachesTargets(const SweepSpec& spec, const std::vector<double>& values);

// The limit for a report that has reached the targets.
Limit TargetReached(const SweepSpec& spec, const Best& report);

// The new state of a plateau after one more report.
PlateauState AdvancePlateau(const Plateau& plateau, const Report& report, PlateauState before);

// The verdict of the trial's limits on a report that is not applied yet; nullopt: it may continue.
std::optional<Verdict> TrialLimitReached(const Sweep& sweep, const Trial& trial,
                                         const Report& report);

}  // namespace attune

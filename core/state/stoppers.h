#pragma once

#include <optional>
#include <string>

#include "core/log/event.h"
#include "core/state/state.h"

// The limits of a sweep and of its trials (StopPolicy). They are judged beside the scheduler.
namespace attune {

// A limit that was reached: its name in the sweep file, and a sentence.
struct Limit {
  std::string rule;
  std::string text;
};

// The first of these limits that the sweep has reached.
std::optional<Limit> LimitReached(const Sweep& sweep, const StopPolicy& stop, Time now);

// When, if nothing else happens, time alone will make the sweep reach one; nullopt: never.
std::optional<Time> Deadline(const Sweep& sweep);

// Whether values of the objectives are as good as every target; false where there is none.
bool Reached(const SweepSpec& spec, const std::vector<double>& values);

// The target as a limit that this report has reached.
Limit TargetReached(const SweepSpec& spec, const Best& report);

// The standstill with one report more.
Standstill After(const Plateau& plateau, const Report& report, Standstill before);

// The verdict of the trial's own limits on a report that is not applied yet; nullopt: it goes on.
std::optional<Verdict> TrialLimitReached(const Sweep& sweep, const Trial& trial,
                                         const Report& report);

}  // namespace attune

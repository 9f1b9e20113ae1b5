#include "core/analysis/cost.h"

#include <algorithm>

namespace attune {
namespace {

constexpr double kHourUs = 3600e6;
constexpr double kHourSeconds = 3600;

double HoursBetween(Time from, Time to) {
  return std::max(0.0, static_cast<double>(to.us - from.us) / kHourUs);
}

double UnitsOf(const AttemptUse& attempt, bool has_gpus) {
  return has_gpus ? attempt.gpus : std::max<double>(1, attempt.workers);
}

// When the attempt saved its newest checkpoint up to `step`; its begin if it saved none.
Time LastUsefulTime(const AttemptUse& attempt, Step step) {
  Time useful = attempt.begin;
  for (const SavedStep& saved : attempt.checkpoints) {
    if (saved.step <= step) useful = std::max(useful, saved.time);
  }
  return useful;
}

// The wasted hours of each attempt of a trial. They are found from the last attempt to the first.
double WastedHours(const TrialUse& trial, bool has_gpus, Time now) {
  double hours = 0;
  // The newest step that a later attempt continued from; nullopt: no later attempt repeats steps.
  std::optional<Step> kept;
  for (auto attempt = trial.attempts.rbegin(); attempt != trial.attempts.rend(); ++attempt) {
    const Step begin = attempt->resumed_from.value_or(Step(0));
    if (attempt == trial.attempts.rbegin() && attempt->broken)
      kept = attempt->checkpoints.empty() ? begin : attempt->checkpoints.back().step;
    if (kept) {
      const Time end = attempt->end.value_or(now);
      hours += UnitsOf(*attempt, has_gpus) * HoursBetween(LastUsefulTime(*attempt, *kept), end);
    }
    if (attempt->cloned) {
      kept.reset();
    } else {
      kept = kept ? std::min(*kept, begin) : begin;
    }
  }
  return hours;
}

// The hours that a stopped trial would have needed for its other steps.
double SavedHours(const TrialUse& trial, Step last_step, bool has_gpus) {
  double seconds = 0;
  double steps = 0;
  for (const AttemptUse& attempt : trial.attempts) {
    const int64_t done = attempt.last_step.value - attempt.resumed_from.value_or(Step(0)).value;
    if (attempt.seconds.value <= 0 || done <= 0) continue;
    seconds += attempt.seconds.value;
    steps += static_cast<double>(done);
  }
  const int64_t left = last_step.value - trial.last_step.value;
  if (steps <= 0 || left <= 0) return 0;
  return static_cast<double>(left) * seconds / steps / kHourSeconds *
         UnitsOf(trial.attempts.back(), has_gpus);
}

}  // namespace

SweepCost CostOf(const std::vector<TrialUse>& trials, Step last_step, Time now) {
  SweepCost cost;
  cost.has_gpus = std::ranges::any_of(trials, [](const TrialUse& trial) {
    return std::ranges::any_of(trial.attempts,
                               [](const AttemptUse& attempt) { return attempt.gpus > 0; });
  });
  if (last_step.value > 0) cost.saved_hours = 0;
  for (const TrialUse& trial : trials) {
    for (const AttemptUse& attempt : trial.attempts) {
      cost.used_hours +=
          UnitsOf(attempt, cost.has_gpus) * HoursBetween(attempt.begin, attempt.end.value_or(now));
      ++cost.attempts;
      cost.running += attempt.end ? 0 : 1;
      cost.broken += attempt.broken ? 1 : 0;
    }
    cost.wasted_hours += WastedHours(trial, cost.has_gpus, now);
    if (!trial.stopped) continue;
    ++cost.stopped;
    if (cost.saved_hours) *cost.saved_hours += SavedHours(trial, last_step, cost.has_gpus);
  }
  return cost;
}

}  // namespace attune

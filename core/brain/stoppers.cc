#include "core/brain/stoppers.h"

#include <algorithm>
#include <cmath>

namespace attune {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kSecondsPerHour = 3600;

double RanSeconds(const Sweep& sweep, Time now) {
  const int64_t since = sweep.state == SweepState::kPaused ? 0 : now.us - sweep.running_since.us;
  return static_cast<double>(sweep.ran_us + since) / kMicroseconds;
}

int Gpus(const Trial& trial) {
  size_t gpus = 0;
  for (const RankSlot& slot : trial.live->ranks) {
    if (!trial.live->gone.contains(slot.executor)) gpus += slot.gpus.size();
  }
  return static_cast<int>(gpus);
}

double GpuSeconds(const Sweep& sweep, Time now) {
  double seconds = sweep.gpu_seconds;
  for (TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    seconds += Gpus(trial) * static_cast<double>(now.us - trial.live->decided.us) / kMicroseconds;
  }
  return seconds;
}

// 90 s, 1.5 h: for a sentence.
std::string Duration(double seconds) {
  if (seconds < 2 * 60) return FormatShort(seconds) + " s";
  if (seconds < 2 * kSecondsPerHour) return FormatShort(seconds / 60) + " min";
  return FormatShort(seconds / kSecondsPerHour) + " h";
}

Time Later(Time now, double seconds) {
  return Time{now.us + static_cast<int64_t>(std::ceil(seconds * kMicroseconds))};
}

}  // namespace

std::optional<Limit> LimitReached(const Sweep& sweep, const StopPolicy& stop, Time now) {
  const Objective& objective = sweep.spec.objective;
  if (stop.target && sweep.best && !objective.Worse(sweep.best->value, *stop.target)) {
    const Best& first = sweep.reached ? *sweep.reached : *sweep.best;
    return Limit{"target", "the target was reached: trial " + std::to_string(first.trial.value) +
                               " reported " + objective.metric + " " + FormatShort(first.value) +
                               " at step " + std::to_string(first.step.value)};
  }
  if (stop.max_time.value > 0 && RanSeconds(sweep, now) >= stop.max_time.value)
    return Limit{"max_time", "stop.max_time of " + Duration(stop.max_time.value) + " is used up"};
  if (stop.max_gpu_hours > 0 && GpuSeconds(sweep, now) >= stop.max_gpu_hours * kSecondsPerHour) {
    return Limit{"max_gpu_hours",
                 "stop.max_gpu_hours of " + FormatShort(stop.max_gpu_hours) + " is used up"};
  }
  if (stop.patience > 0 && sweep.since_best >= stop.patience) {
    return Limit{"patience", "the last " + std::to_string(sweep.since_best) +
                                 " trials that ended brought no better " + objective.metric +
                                 " (stop.patience)"};
  }
  return std::nullopt;
}

std::optional<Time> Deadline(const Sweep& sweep) {
  if (sweep.state == SweepState::kPaused || sweep.stopping_as) return std::nullopt;
  const StopPolicy& stop = sweep.spec.stop;
  std::optional<Time> first;
  if (stop.max_time.value > 0) {
    first = Later(sweep.running_since,
                  stop.max_time.value - static_cast<double>(sweep.ran_us) / kMicroseconds);
  }
  if (stop.max_gpu_hours > 0 && sweep.used.gpus > 0) {
    const Time since = sweep.running_since;  // any moment does: use grows evenly
    const double left = stop.max_gpu_hours * kSecondsPerHour - GpuSeconds(sweep, since);
    const Time then = Later(since, left / sweep.used.gpus);
    first = first ? std::min(*first, then) : then;
  }
  return first;
}

std::optional<Verdict> TrialLimitReached(const Sweep& sweep, const Trial& trial,
                                         const Report& report) {
  const StopPolicy& stop = sweep.spec.stop;
  const auto metric = report.metrics.find(sweep.spec.objective.metric);
  Reason reason{.step = report.step};
  if (metric != report.metrics.end()) reason.value = metric->second;

  const double seconds = trial.seconds.value + report.seconds.value;
  if (stop.max_trial_time.value > 0 && seconds >= stop.max_trial_time.value) {
    reason.rule = "max_trial_time";
    reason.text = "stopped at step " + std::to_string(report.step.value) + ": it has trained for " +
                  Duration(seconds) + ", and stop.max_trial_time is " +
                  Duration(stop.max_trial_time.value);
    return Verdict::Stop(reason);
  }
  const bool better = std::isfinite(reason.value) &&
                      (!trial.best || sweep.spec.objective.Better(reason.value, *trial.best));
  const int since_best = better ? 0 : trial.since_best + 1;
  if (stop.trial_patience > 0 && since_best >= stop.trial_patience) {
    reason.rule = "trial_patience";
    if (trial.best) reason.cutoff = *trial.best;
    reason.text = "stopped at step " + std::to_string(report.step.value) + ": " +
                  sweep.spec.objective.metric + " has not improved for " +
                  std::to_string(since_best) + " reports" +
                  (trial.best ? " (best " + FormatShort(*trial.best) + ")" : "");
    return Verdict::Stop(reason);
  }
  return std::nullopt;
}

}  // namespace attune

#include "core/state/stoppers.h"

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"

namespace attune {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kSecondsPerHour = 3600;

double RanSeconds(const Sweep& sweep, Time now) {
  const int64_t since = sweep.state == SweepState::kPaused ? 0 : now.us - sweep.running_since.us;
  return static_cast<double>(sweep.ran_us + since) / kMicroseconds;
}

double Gpus(const Trial& trial) {
  int percent = 0;
  for (const RankSlot& slot : trial.live->ranks) {
    if (!trial.live->ended_parts.contains(slot.executor)) percent += GpuPercent(slot);
  }
  return percent / 100.0;
}

double GpuSeconds(const Sweep& sweep, Time now) {
  double seconds = sweep.gpu_seconds;
  for (TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    seconds +=
        Gpus(trial) * static_cast<double>(now.us - trial.live->assigned_at.us) / kMicroseconds;
  }
  return seconds;
}

// The duration for a message: "90 s", "1.5 h".
std::string Duration(double seconds) {
  if (seconds < 2 * 60) return FormatShort(seconds) + " s";
  if (seconds < 2 * kSecondsPerHour) return FormatShort(seconds / 60) + " min";
  return FormatShort(seconds / kSecondsPerHour) + " h";
}

// The metrics for a message: "accuracy", "accuracy or latency".
std::string Names(const std::vector<Objective>& objectives) {
  std::string text;
  for (const Objective& objective : objectives)
    text += (text.empty() ? "" : " or ") + objective.metric;
  return text;
}

// Whether the report is the trial's best in some objective.
bool Improves(const SweepSpec& spec, const Trial& trial, const Report& report) {
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    const double best = i < trial.best.size() ? trial.best[i] : kNaN;
    if (spec.objectives[i].Better(spec.objectives[i].ValueIn(report.metrics), best)) return true;
  }
  return false;
}

std::string DescribeStop(Step step) {
  return "stopped at step " + std::to_string(step.value) + ": ";
}

double MeanOf(const std::deque<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The population standard deviation; not finite if some value is not.
double DeviationOf(const std::deque<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::optional<Verdict> AtPlateau(const Plateau& plateau, const Trial& trial, const Report& report) {
  if (report.step < plateau.grace_period) return std::nullopt;
  const PlateauState now = AdvancePlateau(plateau, report, trial.plateau_state);
  const std::string& metric = plateau.metric.metric;
  Reason reason{
      .rule = "plateau", .step = report.step, .value = plateau.metric.ValueIn(report.metrics)};
  if (plateau.std) {
    if (std::ssize(now.values) < plateau.patience) return std::nullopt;
    const double deviation = DeviationOf(now.values);
    if (!(deviation <= *plateau.std)) return std::nullopt;
    reason.text = DescribeStop(report.step) + "the last " + std::to_string(plateau.patience) +
                  " values of " + metric + " deviate by " + FormatShort(deviation) +
                  " from their mean " + FormatShort(MeanOf(now.values)) +
                  ", and stop.plateau.std is " + FormatShort(*plateau.std);
    return Verdict::Stop(reason);
  }
  if (now.since_best < plateau.patience) return std::nullopt;
  reason.cutoff = now.best;
  reason.text =
      DescribeStop(report.step) + metric + " has not improved" +
      (plateau.min_delta > 0 ? " by more than " + FormatShort(plateau.min_delta) : std::string()) +
      " for " + std::to_string(now.since_best) + " reports" +
      (std::isnan(now.best) ? ""
                            : " since " + FormatShort(now.best) + " at step " +
                                  std::to_string(now.best_step.value)) +
      " (stop.plateau)";
  return Verdict::Stop(reason);
}

std::optional<Verdict> AtThreshold(const Threshold& threshold, const Report& report) {
  const auto found = report.metrics.find(threshold.metric);
  if (report.step < threshold.grace_period || found == report.metrics.end()) return std::nullopt;
  const double value = found->second;
  const bool above = threshold.at_least && value >= *threshold.at_least;
  const bool below = threshold.at_most && value <= *threshold.at_most;
  if (!above && !below) return std::nullopt;
  const double bound = above ? *threshold.at_least : *threshold.at_most;
  return Verdict::Stop({.rule = "threshold",
                        .step = report.step,
                        .value = value,
                        .cutoff = bound,
                        .text = DescribeStop(report.step) + threshold.metric + " " +
                                FormatShort(value) + (above ? " is at least " : " is at most ") +
                                FormatShort(bound) + " (stop.threshold)"});
}

// Adds at most 300 years, so that the sum does not overflow.
Time AddSeconds(Time now, double seconds) {
  constexpr double kMost = 1e10;
  const double us = std::ceil(std::min(seconds, kMost) * kMicroseconds);
  return Time{now.us + static_cast<int64_t>(us)};
}

}  // namespace

bool ReachesTargets(const SweepSpec& spec, const std::vector<double>& values) {
  const auto& targets = spec.stop.targets;
  bool any = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i]) continue;
    if (spec.objectives[i].Worse(values[i], *targets[i])) return false;
    any = true;
  }
  return any;
}

Limit TargetReached(const SweepSpec& spec, const Best& report) {
  std::string text = spec.objectives.size() > 1 ? "the targets were reached: trial "
                                                : "the target was reached: trial ";
  text += std::to_string(report.trial.value) + " reported ";
  for (size_t i = 0; i < report.values.size(); ++i) {
    text += (i == 0 ? "" : ", ") + spec.objectives[i].metric + " " + FormatShort(report.values[i]);
  }
  return {"target", text + " at step " + std::to_string(report.step.value)};
}

std::optional<Limit> LimitReached(const Sweep& sweep, const StopPolicy& stop, Time now) {
  if (!stop.targets.empty() && sweep.reached) return TargetReached(sweep.spec, *sweep.reached);
  if (stop.max_time.value > 0 && RanSeconds(sweep, now) >= stop.max_time.value)
    return Limit{"max_time", "stop.max_time of " + Duration(stop.max_time.value) + " is used up"};
  if (stop.max_gpu_hours > 0 && GpuSeconds(sweep, now) >= stop.max_gpu_hours * kSecondsPerHour) {
    return Limit{"max_gpu_hours",
                 "stop.max_gpu_hours of " + FormatShort(stop.max_gpu_hours) + " is used up"};
  }
  if (stop.patience > 0 && sweep.since_best >= stop.patience) {
    return Limit{"patience", "the last " + std::to_string(sweep.since_best) +
                                 " trials that ended " +
                                 (sweep.spec.objectives.size() == 1
                                      ? "brought no better " + sweep.spec.objective().metric
                                      : "left the front as it was") +
                                 " (stop.patience)"};
  }
  return std::nullopt;
}

std::optional<Time> Deadline(const Sweep& sweep) {
  if (sweep.state == SweepState::kPaused || sweep.stopping_as) return std::nullopt;
  const StopPolicy& stop = sweep.spec.stop;
  std::optional<Time> first;
  if (stop.max_time.value > 0) {
    first = AddSeconds(sweep.running_since,
                       stop.max_time.value - static_cast<double>(sweep.ran_us) / kMicroseconds);
  }
  if (stop.max_gpu_hours > 0 && sweep.used.gpu_percent > 0) {
    const Time since = sweep.running_since;  // any time works, because the use grows linearly
    const double left = stop.max_gpu_hours * kSecondsPerHour - GpuSeconds(sweep, since);
    const Time used_up = AddSeconds(since, left * 100 / sweep.used.gpu_percent);
    first = first ? std::min(*first, used_up) : used_up;
  }
  return first;
}

std::optional<Verdict> TrialLimitReached(const Sweep& sweep, const Trial& trial,
                                         const Report& report) {
  const StopPolicy& stop = sweep.spec.stop;
  Reason reason{.step = report.step, .value = sweep.spec.objective().ValueIn(report.metrics)};

  const double seconds = trial.seconds.value + report.seconds.value;
  if (stop.max_trial_time.value > 0 && seconds >= stop.max_trial_time.value) {
    reason.rule = "max_trial_time";
    reason.text = DescribeStop(report.step) + "it has trained for " + Duration(seconds) +
                  ", and stop.max_trial_time is " + Duration(stop.max_trial_time.value);
    return Verdict::Stop(reason);
  }
  const double known = trial.best.empty() ? kNaN : trial.best.front();
  const int since_best = Improves(sweep.spec, trial, report) ? 0 : trial.since_best + 1;
  if (stop.trial_patience > 0 && since_best >= stop.trial_patience) {
    reason.rule = "trial_patience";
    reason.cutoff = known;
    reason.text = DescribeStop(report.step) + Names(sweep.spec.objectives) +
                  " has not improved for " + std::to_string(since_best) + " reports" +
                  (std::isnan(known) ? "" : " (best " + FormatShort(known) + ")");
    return Verdict::Stop(reason);
  }
  if (trial.until.value > 0) return std::nullopt;  // a user wants this trial to continue
  for (const Threshold& threshold : stop.thresholds) {
    if (auto verdict = AtThreshold(threshold, report)) return verdict;
  }
  return stop.plateau ? AtPlateau(*stop.plateau, trial, report) : std::nullopt;
}

PlateauState AdvancePlateau(const Plateau& plateau, const Report& report, PlateauState before) {
  const double value = plateau.metric.ValueIn(report.metrics);
  if (plateau.std) {
    before.values.push_back(value);
    if (std::ssize(before.values) > plateau.patience) before.values.pop_front();
    return before;
  }
  const double delta = plateau.metric.mode == Mode::kMax ? plateau.min_delta : -plateau.min_delta;
  ++before.since_best;
  if (plateau.metric.Better(value, before.best + delta))
    before = {.best = value, .best_step = report.step};
  return before;
}

}  // namespace attune

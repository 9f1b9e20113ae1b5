#include "simulator/replay.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "simulator/simulation.h"

namespace attune::simulate {
namespace {

constexpr const char* kRecorded = "recorded";

// Proposes the recorded configurations in their original order.
class RecordedSearcher final : public Searcher {
 public:
  explicit RecordedSearcher(const std::vector<Recording::Trial>& trials) : trials_(trials) {}

  Suggestion Suggest(ProposalNumber proposal) const override {
    if (proposal.value >= trials_.size()) return Exhausted{"no further trial was recorded"};
    return Proposed{trials_[proposal.value].config, {.rule = kRecorded, .text = "as recorded"}};
  }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  const std::vector<Recording::Trial>& trials_;
};

// Plays the recorded reports. After the end of a recording, every report has the metrics `beyond`.
class Playback final : public Curves {
 public:
  Playback(const Recording& recording, Metrics beyond)
      : recording_(recording), beyond_(std::move(beyond)) {
    double seconds = 0;
    int64_t steps = 0;
    for (const Recording::Trial& trial : recording.trials()) {
      for (const auto& [step, point] : trial.curve) seconds += point.seconds.value;
      if (!trial.curve.empty()) steps += trial.curve.rbegin()->first.value;
      longest_ = std::max(longest_, trial.curve.empty() ? Step(0) : trial.curve.rbegin()->first);
    }
    seconds_per_step_ = steps > 0 ? seconds / static_cast<double>(steps) : 0;
  }

  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    return recording_.spec().objective().ValueIn(MetricsAt(trial, step));
  }

  Metrics MetricsAt(TrialNumber trial, Step step) const override {
    const auto& curve = TrialOf(trial).curve;
    const auto found = curve.find(step);
    return found == curve.end() ? beyond_ : found->second.metrics;
  }

  Step NextReport(TrialNumber trial, Step after) const override {
    const auto& curve = TrialOf(trial).curve;
    const auto next = curve.upper_bound(after);
    return next == curve.end() ? Step(after.value + ReportInterval(trial)) : next->first;
  }

  std::optional<Seconds> SecondsOf(TrialNumber trial, Step step) const override {
    const auto& curve = TrialOf(trial).curve;
    const auto found = curve.find(step);
    if (found != curve.end()) return found->second.seconds;
    const auto interval = static_cast<double>(ReportInterval(trial));
    if (curve.empty()) return Seconds(interval * seconds_per_step_);
    double seconds = 0;
    for (const auto& [_, point] : curve) seconds += point.seconds.value;
    return Seconds(interval * seconds / static_cast<double>(curve.rbegin()->first.value));
  }

  // A program that ends without an order to stop ends at the last step of the longest trial.
  Step LastStep(TrialNumber trial) const override {
    return TrialOf(trial).ended_at.value_or(longest_);
  }

  std::optional<Outcome> OutcomeAfter(TrialNumber trial, Step step) const override {
    const Recording::Trial& recorded = TrialOf(trial);
    if (!recorded.ended_at || step < *recorded.ended_at) return std::nullopt;
    return recorded.state == TrialState::kFailed ? Outcome::kFailed : Outcome::kFinished;
  }

 private:
  const Recording::Trial& TrialOf(TrialNumber trial) const {
    return recording_.trials()[trial.value];
  }

  // The number of steps between the last two reports.
  int64_t ReportInterval(TrialNumber trial) const {
    const auto& curve = TrialOf(trial).curve;
    if (curve.empty()) return 1;
    const Step before = curve.size() > 1 ? std::next(curve.rbegin())->first : Step(0);
    return curve.rbegin()->first.value - before.value;
  }

  const Recording& recording_;
  const Metrics beyond_;
  Step longest_{0};
  double seconds_per_step_ = 0;
};

// Observes a course. It collects the last step of each trial and the best recorded report.
class CourseObserver {
 public:
  explicit CourseObserver(const Recording& recording)
      : recording_(recording), tally_(recording.spec(), {}), trials_(recording.trials().size()) {}

  void operator()(const Event& event) {
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact))
      cloned_ = cloned_ || decided->verdict.kind == VerdictKind::kExploit;
    if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact))
      cloned_ = cloned_ || promoted->donor || promoted->config;
    if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
      const uint32_t trial = reported->attempt.trial.number.value;
      if (!recording_.trials()[trial].curve.contains(reported->report.step)) {
        trials_[trial].beyond = true;
        trials_[trial].step = std::max(trials_[trial].step, reported->report.step);
        return;  // not a recorded report
      }
    }
    tally_.Observe(event);
  }

  bool cloned() const { return cloned_; }

  Replay::Course Course(Summary summary) {
    summary.best = tally_.summary().best;
    for (size_t i = 0; i < tally_.trials().size(); ++i) {
      const Tally::Trial& trial = tally_.trials()[i];
      trials_[i].state = trial.state;
      trials_[i].step = std::max(trials_[i].step, trial.step);
      trials_[i].reason = trial.reason;
    }
    return {.summary = std::move(summary), .trials = std::move(trials_)};
  }

 private:
  const Recording& recording_;
  Tally tally_;
  std::vector<Replay::Trial> trials_;
  bool cloned_ = false;
};

// The metrics that unknown reports get: those of the best recorded report, or NaN.
Metrics AssumedMetrics(const Recording& recording, const SweepSpec& spec, bool best) {
  Metrics metrics;
  for (const std::string& metric : spec.ReportedMetrics())
    metrics[metric] = std::numeric_limits<double>::quiet_NaN();
  double value = std::numeric_limits<double>::quiet_NaN();
  if (!best) return metrics;
  for (const Recording::Trial& trial : recording.trials()) {
    for (const auto& [_, point] : trial.curve) {
      const auto values = ValuesThatCount(spec.objectives, spec.constraints, point.metrics);
      if (values.empty() || !spec.objective().Better(values.front(), value)) continue;
      value = values.front();
      metrics = point.metrics;
    }
  }
  return metrics;
}

SweepSpec PlaybackSpec(SweepSpec spec, const Recording& recording) {
  spec.program.command = {kRecorded};
  spec.initial_points.clear();
  spec.warm_start.clear();
  // The recorded sweep may have more trials than its limit, because enqueued trials do not count.
  const auto recorded_trials = std::ssize(recording.trials());
  if (spec.stop.max_trials == recording.spec().stop.max_trials && spec.stop.max_trials > 0)
    spec.stop.max_trials = std::max<int64_t>(spec.stop.max_trials, recorded_trials);
  spec.searcher = {.name = kRecorded};
  spec.gang.min_workers = 0;
  spec.failure.max_restarts = 0;  // a recorded trial fails only after its last restart
  return spec;
}

Result<Replay::Course> RunCourse(const Recording& recording, const SweepSpec& spec,
                                 const Algorithms& algorithms, int slots,
                                 const std::function<bool()>& is_cancelled, bool best) {
  CourseObserver observer(recording);
  const auto summary =
      Simulate(spec, algorithms, Playback(recording, AssumedMetrics(recording, spec, best)),
               {.slots = slots,
                .startup = recording.StartupTime(),
                .max_reports = kMaxReplayedReports / 2,
                .is_cancelled = is_cancelled},
               [&](const Event& event) { observer(event); });
  if (observer.cloned())
    return Invalid("scheduler.name: " + spec.scheduler.name +
                   " copies weights between trials, and the recording does not show the effect; "
                   "replay under a scheduler that only pauses or stops trials");
  if (!summary.ok()) return summary.error();
  return observer.Course(*summary);
}

// Returns a metric that the sweep needs in every report and that some report lacks; empty if none.
std::string MissingMetric(const Recording& recording, const SweepSpec& spec) {
  for (const std::string& metric : spec.ReportedMetrics()) {
    for (const Recording::Trial& trial : recording.trials()) {
      for (const auto& [_, point] : trial.curve) {
        if (!point.metrics.contains(metric)) return metric;
      }
    }
  }
  return "";
}

}  // namespace

Result<Replay> ReplayUnder(const Recording& recording, const SweepSpec& spec,
                           const Algorithms& algorithms, int slots,
                           const std::function<bool()>& is_cancelled) {
  if (!recording.summary().best)
    return Invalid(
        "no trial has reported a result that counts, so there is nothing to replay; wait for "
        "the first report");
  if (spec.time_attr != recording.spec().time_attr)
    return Invalid("scheduler.time_attr: the recorded reports count time in " +
                   (recording.spec().time_attr.empty() ? "the program's steps"
                                                       : "`" + recording.spec().time_attr + "`") +
                   "; replay with the same time_attr");
  if (const std::string missing = MissingMetric(recording, spec); !missing.empty())
    return Invalid("stop: " + missing +
                   " is missing in some recorded reports; remove the limit that uses it");
  Algorithms with_recorded = algorithms;
  with_recorded.Add(
      Entry<Searcher>{.name = kRecorded,
                      .help = "",
                      .options = {},
                      .make = [&recording](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return {std::make_unique<RecordedSearcher>(recording.trials())};
                      }});
  auto worst = RunCourse(recording, PlaybackSpec(spec, recording), with_recorded, slots,
                         is_cancelled, false);
  if (!worst.ok()) return worst.error();
  Replay replay{.if_worst = std::move(worst).value(), .if_best = {}};
  if (std::ranges::none_of(replay.if_worst.trials, &Replay::Trial::beyond)) {
    replay.if_best = replay.if_worst;
    return replay;
  }
  auto best =
      RunCourse(recording, PlaybackSpec(spec, recording), with_recorded, slots, is_cancelled, true);
  if (!best.ok()) return best.error();
  replay.if_best = std::move(best).value();
  return replay;
}

}  // namespace attune::simulate

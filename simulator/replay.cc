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

// Proposes what was tried, in the same order.
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

// What was recorded, and beyond that always the same metrics.
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
    seconds_a_step_ = steps > 0 ? seconds / static_cast<double>(steps) : 0;
  }

  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    return recording_.spec().objective().Of(OthersAt(trial, step));
  }

  Metrics OthersAt(TrialNumber trial, Step step) const override {
    const auto& curve = Of(trial).curve;
    const auto found = curve.find(step);
    return found == curve.end() ? beyond_ : found->second.metrics;
  }

  Step NextReport(TrialNumber trial, Step after) const override {
    const auto& curve = Of(trial).curve;
    const auto next = curve.upper_bound(after);
    return next == curve.end() ? Step(after.value + Gap(trial)) : next->first;
  }

  std::optional<Seconds> SecondsOf(TrialNumber trial, Step step) const override {
    const auto& curve = Of(trial).curve;
    const auto found = curve.find(step);
    if (found != curve.end()) return found->second.seconds;
    const auto gap = static_cast<double>(Gap(trial));
    if (curve.empty()) return Seconds(gap * seconds_a_step_);
    double seconds = 0;
    for (const auto& [_, point] : curve) seconds += point.seconds.value;
    return Seconds(gap * seconds / static_cast<double>(curve.rbegin()->first.value));
  }

  // Programs that end by themselves do so where the longest trial has come to.
  Step End(TrialNumber trial) const override { return Of(trial).ended_at.value_or(longest_); }

  std::optional<Outcome> EndsAfter(TrialNumber trial, Step step) const override {
    const Recording::Trial& recorded = Of(trial);
    if (!recorded.ended_at || step < *recorded.ended_at) return std::nullopt;
    return recorded.state == TrialState::kFailed ? Outcome::kFailed : Outcome::kFinished;
  }

 private:
  const Recording::Trial& Of(TrialNumber trial) const { return recording_.trials()[trial.value]; }

  // Steps between reports, as they were at the end.
  int64_t Gap(TrialNumber trial) const {
    const auto& curve = Of(trial).curve;
    if (curve.empty()) return 1;
    const Step before = curve.size() > 1 ? std::next(curve.rbegin())->first : Step(0);
    return curve.rbegin()->first.value - before.value;
  }

  const Recording& recording_;
  const Metrics beyond_;
  Step longest_{0};
  double seconds_a_step_ = 0;
};

// Watches a course: how far each trial comes, and the best of what was recorded.
class Watch {
 public:
  explicit Watch(const Recording& recording)
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
        return;  // made up
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

// The metrics of the best report, or of the worst there can be.
Metrics Beyond(const Recording& recording, const SweepSpec& spec, bool best) {
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

SweepSpec ToPlay(SweepSpec spec, const Recording& recording) {
  spec.program.command = {kRecorded};
  spec.initial_points.clear();
  spec.warm_start.clear();
  // Trials that people enqueued came on top of the limit.
  const auto tried = std::ssize(recording.trials());
  if (spec.stop.max_trials == recording.spec().stop.max_trials && spec.stop.max_trials > 0)
    spec.stop.max_trials = std::max<int64_t>(spec.stop.max_trials, tried);
  spec.searcher = {.name = kRecorded};
  spec.gang.min_workers = 0;
  spec.failure.max_restarts = 0;  // of a trial that failed, all restarts had failed
  return spec;
}

Result<Replay::Course> Play(const Recording& recording, const SweepSpec& spec,
                            const Algorithms& algorithms, int slots,
                            const std::function<bool()>& given_up, bool best) {
  Watch watch(recording);
  const auto summary =
      Simulate(spec, algorithms, Playback(recording, Beyond(recording, spec, best)),
               {.slots = slots,
                .start = recording.Start(),
                .max_reports = kMaxReplayedReports / 2,
                .given_up = given_up},
               [&](const Event& event) { watch(event); });
  if (watch.cloned())
    return Invalid("scheduler.name: " + spec.scheduler.name +
                   " gives trials the weights of others, and what they would report with those is "
                   "not recorded; replay under one that pauses or stops");
  if (!summary.ok()) return summary.error();
  return watch.Course(*summary);
}

// A metric that the sweep would ask of every report, and not all have.
std::string NotRecorded(const Recording& recording, const SweepSpec& spec) {
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
                           const std::function<bool()>& given_up) {
  if (!recording.summary().best)
    return Invalid(
        "no trial of the sweep has reported a result that counts, so there is nothing "
        "to replay yet");
  if (spec.time_attr != recording.spec().time_attr)
    return Invalid(
        "scheduler.time_attr: the steps of the recorded curves are those of " +
        (recording.spec().time_attr.empty() ? "the program" : recording.spec().time_attr) +
        ", and nothing can be judged at others");
  if (const std::string lacking = NotRecorded(recording, spec); !lacking.empty())
    return Invalid(
        "stop: " + lacking +
        " was not recorded with each report, so nobody knows what a limit of it had done");
  Algorithms playing = algorithms;
  playing.Add(
      Entry<Searcher>{.name = kRecorded,
                      .help = "",
                      .options = {},
                      .make = [&recording](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return {std::make_unique<RecordedSearcher>(recording.trials())};
                      }});
  auto worst = Play(recording, ToPlay(spec, recording), playing, slots, given_up, false);
  if (!worst.ok()) return worst.error();
  Replay replay{.if_worst = std::move(worst).value(), .if_best = {}};
  if (std::ranges::none_of(replay.if_worst.trials, &Replay::Trial::beyond)) {
    replay.if_best = replay.if_worst;
    return replay;
  }
  auto best = Play(recording, ToPlay(spec, recording), playing, slots, given_up, true);
  if (!best.ok()) return best.error();
  replay.if_best = std::move(best).value();
  return replay;
}

}  // namespace attune::simulate

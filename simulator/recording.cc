#include "simulator/recording.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "simulator/timeline.h"

namespace attune::simulate {
namespace {

double SecondsBetween(Time from, Time to) {
  return static_cast<double>(to.us - from.us) / static_cast<double>(kSecondUs);
}

}  // namespace

Recording::Recording(SweepSpec spec, const std::vector<std::string>& metrics)
    : spec_(std::move(spec)), kept_metrics_(metrics.begin(), metrics.end()), tally_(spec_, {}) {
  for (const std::string& metric : spec_.ReportedMetrics()) kept_metrics_.insert(metric);
}

void Recording::Observe(const Event& event) {
  tally_.Observe(event);
  Dispatch<kCurves>(event.fact, [&](const auto& fact) -> decltype(Handle(fact, event.time)) {
    Handle(fact, event.time);
  });
}

Seconds Recording::StartupTime() const {
  return Seconds(ended_attempts_ > 0 ? startup_s_ / static_cast<double>(ended_attempts_) : 0);
}

void Recording::Handle(const TrialCreated& fact, Time) {
  trials_.push_back({.config = fact.config});
}

void Recording::Handle(const TrialReopened& fact, Time) {
  Trial& trial = TrialOf(fact.record.id);
  trial.state = TrialState::kPending;
  trial.ended_at.reset();
}

void Recording::Handle(const AttemptAssigned& fact, Time now) {
  const Step from = fact.resume ? fact.resume->step : Step(0);
  attempts_[fact.attempt.trial.number] = {.assigned = now, .last_report = now, .last_step = from};
  TrialOf(fact.attempt.trial).state = TrialState::kRunning;
}

void Recording::Handle(const TrialReported& fact, Time now) {
  const auto running = attempts_.find(fact.attempt.trial.number);
  if (running == attempts_.end()) return;
  ++reports_;
  Attempt& attempt = running->second;
  const Report& report = fact.report;
  // A program that runs trials over the REST API may leave out the training time.
  const double took = report.seconds.value > 0 ? report.seconds.value - attempt.seconds.value
                                               : SecondsBetween(attempt.last_report, now);
  AddPoint(TrialOf(fact.attempt.trial), report, Seconds(std::max(took, 0.0)), attempt.last_step);
  attempt.seconds.value += std::max(took, 0.0);
  attempt.last_report = now;
  attempt.last_step = report.step;
}

// An attempt may resume from an old checkpoint and train the same steps again. Only the share of
// its time after the last recorded step counts for the new point.
void Recording::AddPoint(Trial& trial, const Report& report, Seconds took, Step from) {
  if (trial.cloned || report.step <= from) return;
  const auto next = trial.curve.lower_bound(report.step);
  const Step before = next == trial.curve.begin() ? Step(0) : std::prev(next)->first;
  const auto part = static_cast<double>(report.step.value - std::max(before, from).value) /
                    static_cast<double>(report.step.value - from.value);
  Point& point = trial.curve[report.step] = {.metrics = {}, .seconds = Seconds(took.value * part)};
  for (const std::string& metric : kept_metrics_) {
    const auto value = report.metrics.find(metric);
    if (value != report.metrics.end()) point.metrics.insert(*value);
  }
}

void Recording::Handle(const TrialDecided& fact, Time) {
  Trial& trial = TrialOf(fact.attempt.trial);
  trial.told_to_stop = fact.verdict.kind == VerdictKind::kStop;
  if (fact.verdict.kind == VerdictKind::kExploit) trial.cloned = true;
  if (fact.verdict.kind == VerdictKind::kPause) trial.state = TrialState::kPaused;
}

void Recording::Handle(const TrialPromoted& fact, Time) {
  if (fact.donor || fact.config) TrialOf(fact.trial).cloned = true;
}

void Recording::Handle(const AttemptEnded& fact, Time now) {
  const auto ended = attempts_.find(fact.attempt.trial.number);
  if (ended == attempts_.end()) return;
  const Attempt& attempt = ended->second;
  const bool as_decided = fact.outcome == Outcome::kFinished || fact.outcome == Outcome::kStopped ||
                          fact.outcome == Outcome::kPaused;
  if (as_decided && attempt.seconds.value > 0) {
    ++ended_attempts_;
    startup_s_ += std::max(SecondsBetween(attempt.assigned, now) - attempt.seconds.value, 0.0);
  }
  attempts_.erase(ended);
}

void Recording::Handle(const TrialEnded& fact, Time) {
  Trial& trial = TrialOf(fact.trial);
  trial.state = fact.state;
  const Step last_step = trial.curve.empty() ? Step(0) : trial.curve.rbegin()->first;
  const bool by_itself = fact.state == TrialState::kCompleted && !trial.told_to_stop;
  if (!trial.cloned && (by_itself || fact.state == TrialState::kFailed)) trial.ended_at = last_step;
}

}  // namespace attune::simulate

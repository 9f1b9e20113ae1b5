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
    : spec_(std::move(spec)), kept_(metrics.begin(), metrics.end()), tally_(spec_, {}) {
  for (const std::string& metric : spec_.ReportedMetrics()) kept_.insert(metric);
}

void Recording::Observe(const Event& event) {
  tally_.Observe(event);
  Dispatch<kCurves>(event.fact, [&](const auto& fact) -> decltype(On(fact, event.time)) {
    On(fact, event.time);
  });
}

Seconds Recording::Start() const {
  return Seconds(ended_ > 0 ? beside_s_ / static_cast<double>(ended_) : 0);
}

void Recording::On(const TrialCreated& fact, Time) { trials_.push_back({.config = fact.config}); }

void Recording::On(const TrialReopened& fact, Time) {
  Trial& trial = At(fact.record.id);
  trial.state = TrialState::kPending;
  trial.ended_at.reset();
}

void Recording::On(const AttemptAssigned& fact, Time now) {
  const Step from = fact.resume ? fact.resume->step : Step(0);
  attempts_[fact.attempt.trial.number] = {.assigned = now, .heard = now, .at = from};
  At(fact.attempt.trial).state = TrialState::kRunning;
}

void Recording::On(const TrialReported& fact, Time now) {
  const auto running = attempts_.find(fact.attempt.trial.number);
  if (running == attempts_.end()) return;
  ++reports_;
  Attempt& attempt = running->second;
  const Report& report = fact.report;
  // Who tells trials from outside need not say how long they trained.
  const double took = report.seconds.value > 0 ? report.seconds.value - attempt.seconds.value
                                               : SecondsBetween(attempt.heard, now);
  Add(At(fact.attempt.trial), report, Seconds(std::max(took, 0.0)), attempt.at);
  attempt.seconds.value += std::max(took, 0.0);
  attempt.heard = now;
  attempt.at = report.step;
}

// An attempt that goes on from far behind trains again what no report tells of.
void Recording::Add(Trial& trial, const Report& report, Seconds took, Step from) {
  if (trial.cloned || report.step <= from) return;
  const auto next = trial.curve.lower_bound(report.step);
  const Step before = next == trial.curve.begin() ? Step(0) : std::prev(next)->first;
  const auto part = static_cast<double>(report.step.value - std::max(before, from).value) /
                    static_cast<double>(report.step.value - from.value);
  Point& point = trial.curve[report.step] = {.metrics = {}, .seconds = Seconds(took.value * part)};
  for (const std::string& metric : kept_) {
    const auto value = report.metrics.find(metric);
    if (value != report.metrics.end()) point.metrics.insert(*value);
  }
}

void Recording::On(const TrialDecided& fact, Time) {
  Trial& trial = At(fact.attempt.trial);
  trial.told = fact.verdict.kind == VerdictKind::kStop;
  if (fact.verdict.kind == VerdictKind::kExploit) trial.cloned = true;
  if (fact.verdict.kind == VerdictKind::kPause) trial.state = TrialState::kPaused;
}

void Recording::On(const TrialPromoted& fact, Time) {
  if (fact.donor || fact.config) At(fact.trial).cloned = true;
}

void Recording::On(const AttemptEnded& fact, Time now) {
  const auto ended = attempts_.find(fact.attempt.trial.number);
  if (ended == attempts_.end()) return;
  const Attempt& attempt = ended->second;
  const bool as_decided = fact.outcome == Outcome::kFinished || fact.outcome == Outcome::kStopped ||
                          fact.outcome == Outcome::kPaused;
  if (as_decided && attempt.seconds.value > 0) {
    ++ended_;
    beside_s_ += std::max(SecondsBetween(attempt.assigned, now) - attempt.seconds.value, 0.0);
  }
  attempts_.erase(ended);
}

void Recording::On(const TrialEnded& fact, Time) {
  Trial& trial = At(fact.trial);
  trial.state = fact.state;
  const Step at = trial.curve.empty() ? Step(0) : trial.curve.rbegin()->first;
  const bool by_itself = fact.state == TrialState::kCompleted && !trial.told;
  if (!trial.cloned && (by_itself || fact.state == TrialState::kFailed)) trial.ended_at = at;
}

}  // namespace attune::simulate

#include "simulator/tally.h"

#include <algorithm>
#include <utility>

#include "simulator/timeline.h"

namespace attune::simulate {
namespace {

double InSeconds(int64_t us) { return static_cast<double>(us) / static_cast<double>(kSecondUs); }

}  // namespace

Tally::Tally(const SweepSpec& spec, const std::vector<Step>& rungs)
    : objectives_(spec.objectives), constraints_(spec.constraints) {
  summary_.trials.fill(0);
  for (const Step step : rungs) summary_.rungs.push_back({.step = step});
}

void Tally::Observe(const Event& event) {
  Dispatch<kSummary>(event.fact, [&](const auto& fact) -> decltype(On(fact, event.time)) {
    On(fact, event.time);
  });
  if (over()) return;
  Occupy(0, event.time);
  summary_.wall = Ran(event.time);
}

void Tally::On(const SweepCreated&, Time now) {
  Start(now);
  slots_since_ = now;
}

void Tally::On(const SweepPaused&, Time now) { Stop(now); }

void Tally::On(const SweepResumed&, Time now) { Start(now); }

void Tally::On(const SweepReopened&, Time now) {
  Start(now);
  summary_.state = SweepState::kRunning;
}

void Tally::On(const TrialReopened& fact, Time) {
  const TrialId& id = fact.record.id;
  --summary_.trials[static_cast<size_t>(At(id).state)];
  At(id).state = TrialState::kPending;
}

void Tally::On(const TrialCreated&, Time) {
  trials_.emplace_back();
  ++summary_.created;
}

void Tally::On(const AttemptAssigned& fact, Time now) {
  // Where a trial is told from outside nobody knows its ranks.
  const int slots = std::max(1, static_cast<int>(fact.ranks.size()));
  At(fact.attempt.trial).slots = slots;
  At(fact.attempt.trial).at = fact.resume ? fact.resume->step : Step(0);
  Occupy(slots, now);
}

void Tally::On(const TrialReported& fact, Time now) {
  Trial& trial = At(fact.attempt.trial);
  summary_.steps += fact.report.step.value - trial.at.value;
  trial.at = fact.report.step;
  trial.step = std::max(trial.step, trial.at);
  const auto values = ValuesThatCount(objectives_, constraints_, fact.report.metrics);
  if (values.empty()) return;
  const double value = values.front();
  if (summary_.best && !objectives_.front().Better(value, summary_.best->value)) return;
  summary_.best = {
      .trial = fact.attempt.trial.number, .step = fact.report.step, .value = value, .at = Ran(now)};
}

void Tally::On(const AttemptEnded& fact, Time now) { Occupy(-At(fact.attempt.trial).slots, now); }

void Tally::On(const TrialEnded& fact, Time) {
  At(fact.trial).state = fact.state;
  At(fact.trial).reason = fact.reason;
  ++summary_.trials[static_cast<size_t>(fact.state)];
}

void Tally::On(const SweepEnded& fact, Time now) {
  summary_.state = fact.state;
  summary_.reason = fact.reason;
  Stop(now);
  summary_.wall = Ran(now);
  for (Summary::Rung& rung : summary_.rungs) {
    for (const Trial& trial : trials_) {
      if (trial.step >= rung.step) ++rung.reached;
      if (trial.step == rung.step && trial.state != TrialState::kCompleted) ++rung.stopped;
    }
  }
}

void Tally::Stop(Time now) {
  if (running_since_) ran_us_ += now.us - running_since_->us;
  running_since_.reset();
}

Seconds Tally::Ran(Time now) const {
  return Seconds(InSeconds(ran_us_ + (running_since_ ? now.us - running_since_->us : 0)));
}

void Tally::Occupy(int slots, Time now) {
  slot_us_ += slots_ * (now.us - slots_since_.us);
  summary_.slot_seconds = InSeconds(slot_us_);
  slots_since_ = now;
  slots_ += slots;
  summary_.peak_slots = std::max(summary_.peak_slots, slots_);
}

}  // namespace attune::simulate

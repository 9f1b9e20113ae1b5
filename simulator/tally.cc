#include "simulator/tally.h"

#include <algorithm>
#include <utility>

#include "simulator/timeline.h"

namespace attune::simulate {
namespace {

double ToSeconds(int64_t us) { return static_cast<double>(us) / static_cast<double>(kSecondUs); }

}  // namespace

Tally::Tally(const SweepSpec& spec, const std::vector<Step>& rungs)
    : objectives_(spec.objectives), constraints_(spec.constraints) {
  summary_.trials.fill(0);
  for (const Step step : rungs) summary_.rungs.push_back({.step = step});
}

void Tally::Observe(const Event& event) {
  Dispatch<kSummary>(event.fact, [&](const auto& fact) -> decltype(Handle(fact, event.time)) {
    Handle(fact, event.time);
  });
  if (over()) return;
  ChangeSlots(0, event.time);
  summary_.wall = RunningTime(event.time);
}

void Tally::Handle(const SweepCreated&, Time now) {
  StartClock(now);
  slots_since_ = now;
}

void Tally::Handle(const SweepPaused&, Time now) { StopClock(now); }

void Tally::Handle(const SweepResumed&, Time now) { StartClock(now); }

void Tally::Handle(const SweepReopened&, Time now) {
  StartClock(now);
  summary_.state = SweepState::kRunning;
}

void Tally::Handle(const TrialReopened& fact, Time) {
  const TrialId& id = fact.record.id;
  --summary_.trials[static_cast<size_t>(TrialOf(id).state)];
  TrialOf(id).state = TrialState::kPending;
}

void Tally::Handle(const TrialCreated&, Time) {
  trials_.emplace_back();
  ++summary_.created;
}

void Tally::Handle(const AttemptAssigned& fact, Time now) {
  // The ranks of a trial are unknown if a program runs it over the REST API.
  const int slots = std::max(1, static_cast<int>(fact.ranks.size()));
  TrialOf(fact.attempt.trial).slots = slots;
  TrialOf(fact.attempt.trial).current = fact.resume ? fact.resume->step : Step(0);
  ChangeSlots(slots, now);
}

void Tally::Handle(const TrialReported& fact, Time now) {
  Trial& trial = TrialOf(fact.attempt.trial);
  summary_.steps += fact.report.step.value - trial.current.value;
  trial.current = fact.report.step;
  trial.step = std::max(trial.step, trial.current);
  const auto values = ValuesThatCount(objectives_, constraints_, fact.report.metrics);
  if (values.empty()) return;
  const double value = values.front();
  if (summary_.best && !objectives_.front().Better(value, summary_.best->value)) return;
  summary_.best = {.trial = fact.attempt.trial.number,
                   .step = fact.report.step,
                   .value = value,
                   .at = RunningTime(now)};
}

void Tally::Handle(const AttemptEnded& fact, Time now) {
  ChangeSlots(-TrialOf(fact.attempt.trial).slots, now);
}

void Tally::Handle(const TrialEnded& fact, Time) {
  TrialOf(fact.trial).state = fact.state;
  TrialOf(fact.trial).reason = fact.reason;
  ++summary_.trials[static_cast<size_t>(fact.state)];
}

void Tally::Handle(const SweepEnded& fact, Time now) {
  summary_.state = fact.state;
  summary_.reason = fact.reason;
  StopClock(now);
  summary_.wall = RunningTime(now);
  for (Summary::Rung& rung : summary_.rungs) {
    for (const Trial& trial : trials_) {
      if (trial.step >= rung.step) ++rung.reached;
      if (trial.step == rung.step && trial.state != TrialState::kCompleted) ++rung.stopped;
    }
  }
}

void Tally::StopClock(Time now) {
  if (running_since_) ran_us_ += now.us - running_since_->us;
  running_since_.reset();
}

Seconds Tally::RunningTime(Time now) const {
  return Seconds(ToSeconds(ran_us_ + (running_since_ ? now.us - running_since_->us : 0)));
}

void Tally::ChangeSlots(int change, Time now) {
  slot_us_ += slots_ * (now.us - slots_since_.us);
  summary_.slot_seconds = ToSeconds(slot_us_);
  slots_since_ = now;
  slots_ += change;
  summary_.peak_slots = std::max(summary_.peak_slots, slots_);
}

}  // namespace attune::simulate

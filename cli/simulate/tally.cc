#include "cli/simulate/tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/simulate/timeline.h"

namespace attune::simulate {
namespace {

double InSeconds(int64_t us) { return static_cast<double>(us) / static_cast<double>(kSecondUs); }

}  // namespace

Tally::Tally(Objective objective, const std::vector<Step>& rungs)
    : objective_(std::move(objective)) {
  summary_.trials.fill(0);
  for (const Step step : rungs) summary_.rungs.push_back({.step = step});
}

void Tally::Observe(const Event& event) {
  std::visit([&](const auto& fact) { On(fact, event.time); }, event.fact);
}

void Tally::On(const TrialCreated&, Time) {
  trials_.emplace_back();
  ++summary_.created;
}

void Tally::On(const AttemptAssigned& fact, Time now) {
  At(fact.attempt.trial).slots = static_cast<int>(fact.ranks.size());
  Occupy(static_cast<int>(fact.ranks.size()), now);
}

void Tally::On(const TrialReported& fact, Time now) {
  Trial& trial = At(fact.attempt.trial);
  trial.step = std::max(trial.step, fact.report.step);
  ++summary_.steps;
  const double value = fact.report.metrics.at(objective_.metric);
  if (!std::isfinite(value)) return;
  if (summary_.best && !objective_.Better(value, summary_.best->value)) return;
  summary_.best = {.trial = fact.attempt.trial.number,
                   .step = fact.report.step,
                   .value = value,
                   .at = Seconds(InSeconds(now.us))};
}

void Tally::On(const AttemptEnded& fact, Time now) { Occupy(-At(fact.attempt.trial).slots, now); }

void Tally::On(const TrialEnded& fact, Time) {
  At(fact.trial).state = fact.state;
  ++summary_.trials[static_cast<size_t>(fact.state)];
}

void Tally::On(const SweepEnded& fact, Time now) {
  summary_.state = fact.state;
  summary_.reason = fact.reason;
  summary_.wall = Seconds(InSeconds(now.us));
  for (Summary::Rung& rung : summary_.rungs) {
    for (const Trial& trial : trials_) {
      if (trial.step >= rung.step) ++rung.reached;
      if (trial.step == rung.step && trial.state != TrialState::kCompleted) ++rung.stopped;
    }
  }
}

void Tally::Occupy(int slots, Time now) {
  summary_.slot_seconds += slots_ * InSeconds(now.us - slots_since_.us);
  slots_since_ = now;
  slots_ += slots;
  summary_.peak_slots = std::max(summary_.peak_slots, slots_);
}

}  // namespace attune::simulate

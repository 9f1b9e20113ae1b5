#include "cli/watch/model.h"

#include <algorithm>
#include <cmath>

#include "cli/text/numbers.h"
#include "cli/watch/event_data.h"

namespace attune::cli {
bool IsFinal(std::string_view state) {
  return state == "completed" || state == "stopped" || state == "failed" || state == "killed";
}

std::vector<std::pair<std::string, int64_t>> CountsByState(const rest::TrialCounts& counts) {
  std::vector<std::pair<std::string, int64_t>> states;
  const Json json = rest::ToJson(counts);
  for (const auto& [state, count] : json.items()) states.emplace_back(state, count);
  return states;
}

int64_t CountEnded(const rest::TrialCounts& counts) {
  return counts.completed + counts.stopped + counts.failed + counts.killed;
}

std::optional<double> FindMetric(const std::map<std::string, rest::Real>& metrics,
                                 const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional<double>(found->second);
}

void SweepModel::Reset(const rest::Sweep& sweep, const std::vector<rest::Trial>& trials) {
  Refresh(sweep);
  trials_.clear();
  for (const rest::Trial& trial : trials) {
    trials_[trial.number] = {.number = trial.number,
                             .state = trial.state,
                             .reason = trial.reason,
                             .executor = "",
                             .step = trial.step,
                             .attempts = trial.attempt_count,
                             .last = FindMetric(trial.metrics, objective_.metric),
                             .best = trial.best,
                             .config = trial.config};
  }
}

void SweepModel::Refresh(const rest::Sweep& sweep) {
  id_ = sweep.id;
  name_ = sweep.name;
  state_ = sweep.state;
  reason_ = sweep.reason;
  end_state_ = sweep.end_state;
  waiting_reason_ = sweep.waiting_reason;
  created_ = ParseTime(sweep.created);
  max_step_ = sweep.max_step;
  max_trials_ = sweep.max_trials;
  workers_ = sweep.workers;
  objective_ = {sweep.metric.name, sweep.metric.mode == "min" ? Mode::kMin : Mode::kMax};
  constraints_.clear();
  for (const auto& [name, bounds] : sweep.constraints)
    constraints_.push_back({name, bounds.min, bounds.max});
  rungs_ = sweep.rungs;
}

void SweepModel::Apply(const ServerEvent& event) {
  const EventData data = ReadEvent(event);
  if (event.kind == "sweep_changed") {
    if (!data.state.empty()) state_ = data.state;
    reason_ = data.reason;
    end_state_ = data.end_state;
    return;
  }
  if (event.kind == "sweep_edited") {
    max_trials_ = data.max_trials;
    max_step_ = data.max_step;
    end_state_.clear();
    return;
  }
  if (!data.trial.has_value()) return;
  TrialRow& row = trials_[*data.trial];
  row.number = *data.trial;

  if (event.kind == "trial_created") {
    row.state = data.state;
    if (data.config.is_object()) row.config = data.config;
  } else if (event.kind == "trial_changed") {
    row.state = data.state;
    row.reason = data.reason;
  } else if (event.kind == "attempt_changed") {
    row.attempts = std::max(row.attempts, data.attempt);
    if (!data.executor.empty()) row.executor = data.executor;
  } else if (event.kind == "trial_reported") {
    row.step = std::max(row.step, data.step);
    const std::optional<double> value = FindMetric(data.metrics, objective_.metric);
    if (!value.has_value()) return;
    row.last = value;
    const bool is_feasible = std::ranges::all_of(constraints_, [&](const Constraint& constraint) {
      const std::optional<double> bounded = FindMetric(data.metrics, constraint.metric);
      return bounded.has_value() && constraint.IsMetBy(*bounded);
    });
    if (!is_feasible) return;
    if (!row.best.has_value() || objective_.Better(*value, *row.best)) row.best = value;
  }
}

bool SweepModel::ended() const { return IsFinal(state_); }

int64_t SweepModel::Count(std::string_view state) const {
  return std::count_if(trials_.begin(), trials_.end(),
                       [&](const auto& entry) { return entry.second.state == state; });
}

int64_t SweepModel::ended_trials() const {
  return std::count_if(trials_.begin(), trials_.end(),
                       [](const auto& entry) { return IsFinal(entry.second.state); });
}

int64_t SweepModel::CountReached(int64_t rung) const {
  return std::count_if(trials_.begin(), trials_.end(),
                       [&](const auto& entry) { return entry.second.step >= rung; });
}

const TrialRow* SweepModel::Best() const {
  const TrialRow* best = nullptr;
  for (const auto& [number, row] : trials_) {
    if (!row.best.has_value() || !std::isfinite(*row.best)) continue;
    if (best == nullptr || objective_.Better(*row.best, *best->best)) best = &row;
  }
  return best;
}

}  // namespace attune::cli

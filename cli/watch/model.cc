#include "cli/watch/model.h"

#include <algorithm>

#include "cli/text/numbers.h"

namespace attune::cli {
namespace {

std::optional<double> Metric(const Json& json, const std::string& name) {
  return NumberOf(At(At(json, "metrics"), name));
}

}  // namespace

bool IsFinal(std::string_view state) {
  return state == "completed" || state == "stopped" || state == "failed" || state == "killed";
}

void SweepModel::Reset(const Json& sweep, const Json& trials) {
  Refresh(sweep);
  trials_.clear();
  for (const Json& trial : trials) {
    TrialRow row{.number = WholeAt(trial, "number"),
                 .state = TextAt(trial, "state"),
                 .reason = TextAt(trial, "reason"),
                 .step = WholeAt(trial, "step"),
                 .attempts = WholeAt(trial, "attempts"),
                 .last = Metric(trial, objective_.metric),
                 .best = NumberOf(At(trial, "best"))};
    if (const Json& config = At(trial, "config"); config.is_object()) row.config = config;
    trials_[row.number] = std::move(row);
  }
}

void SweepModel::Refresh(const Json& sweep) {
  id_ = TextAt(sweep, "id");
  name_ = TextAt(sweep, "name");
  state_ = TextAt(sweep, "state");
  reason_ = TextAt(sweep, "reason");
  stopping_ = TextAt(sweep, "stopping");
  waiting_ = TextAt(sweep, "waiting");
  created_ = ParseTime(TextAt(sweep, "created"));
  max_step_ = WholeAt(sweep, "max_step");
  max_trials_ = WholeAt(sweep, "max_trials");
  workers_ = WholeAt(sweep, "workers", 1);
  const Json& metric = At(sweep, "metric");
  objective_ = {TextAt(metric, "name"), TextAt(metric, "mode") == "min" ? Mode::kMin : Mode::kMax};
  constraints_.clear();
  for (const auto& [name, bounds] : At(sweep, "constraints").items())
    constraints_.push_back({name, NumberOf(At(bounds, "min")), NumberOf(At(bounds, "max"))});
  rungs_.clear();
  for (const Json& rung : At(sweep, "rungs")) rungs_.push_back(rung.get<int64_t>());
}

void SweepModel::Apply(const ServerEvent& event) {
  const Json& data = event.data;
  if (event.kind == "sweep_changed") {
    if (const std::string state = TextAt(data, "state"); !state.empty()) state_ = state;
    reason_ = TextAt(data, "reason");
    stopping_ = TextAt(data, "stopping");
    return;
  }
  if (event.kind == "sweep_extended" || event.kind == "sweep_edited") {
    max_trials_ = WholeAt(data, "max_trials");
    max_step_ = WholeAt(data, "max_step");
    stopping_.clear();
    return;
  }
  if (!data.contains("trial")) return;
  const int64_t number = WholeAt(data, "trial");
  TrialRow& row = trials_[number];
  row.number = number;

  if (event.kind == "trial_created") {
    row.state = TextAt(data, "state");
    if (const Json& config = At(data, "config"); config.is_object()) row.config = config;
  } else if (event.kind == "trial_changed") {
    row.state = TextAt(data, "state");
    row.reason = TextAt(data, "reason");
  } else if (event.kind == "attempt_changed") {
    row.attempts = std::max(row.attempts, WholeAt(data, "attempt"));
    if (const std::string executor = TextAt(data, "executor"); !executor.empty()) {
      row.executor = executor;
    }
  } else if (event.kind == "trial_reported") {
    row.step = std::max(row.step, WholeAt(data, "step"));
    const std::optional<double> value = Metric(data, objective_.metric);
    if (!value.has_value()) return;
    row.last = value;
    const bool counts = std::ranges::all_of(constraints_, [&](const Constraint& constraint) {
      const std::optional<double> bounded = Metric(data, constraint.metric);
      return bounded.has_value() && constraint.Holds(*bounded);
    });
    if (!counts) return;
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

int64_t SweepModel::Reached(int64_t rung) const {
  return std::count_if(trials_.begin(), trials_.end(),
                       [&](const auto& entry) { return entry.second.step >= rung; });
}

const TrialRow* SweepModel::Best() const {
  const TrialRow* best = nullptr;
  for (const auto& [number, row] : trials_) {
    if (!row.best.has_value()) continue;
    if (best == nullptr || objective_.Better(*row.best, *best->best)) best = &row;
  }
  return best;
}

}  // namespace attune::cli

#include "server/store/progress.h"

#include <cmath>

#include "server/store/report_form.h"

namespace attune::server {

void Progress::Add(sqlite::Transaction& transaction, const TrialReported& fact) {
  const TrialId& trial = fact.attempt.trial;
  Entry& entry = EntryOf(transaction, trial);
  if (entry.last == nullptr) changed_.push_back(trial);
  entry.last = &fact.report;

  const Objective& objective = ObjectiveOf(transaction, trial.sweep);
  const auto found = fact.report.metrics.find(objective.metric);
  if (found == fact.report.metrics.end() || !std::isfinite(found->second)) return;
  const double value = found->second;
  if (entry.best && !(objective.mode == Mode::kMax ? value > *entry.best : value < *entry.best))
    return;
  entry.best = value;
  entry.best_report = &fact.report;
}

void Progress::Write(sqlite::Transaction& transaction, const TrialId& trial) {
  if (const auto found = trials_.find(trial); found != trials_.end())
    Write(transaction, trial, found->second);
}

void Progress::WriteAll(sqlite::Transaction& transaction) {
  for (const TrialId& trial : changed_) Write(transaction, trial);
  changed_.clear();
}

void Progress::ForgetAll() {
  objectives_.clear();
  trials_.clear();
  changed_.clear();
}

void Progress::Write(sqlite::Transaction& transaction, const TrialId& trial, Entry& entry) {
  if (entry.last == nullptr) return;
  const Report& last = *std::exchange(entry.last, nullptr);
  metrics_.clear();
  WriteMetrics(last.metrics, metrics_);
  const Report* const best = std::exchange(entry.best_report, nullptr);
  if (best == nullptr) {
    transaction.Run(
        "UPDATE trials SET step = ?, seconds = seconds_before + ?, metrics = ?"
        " WHERE sweep = ? AND number = ?",
        last.step.value, last.seconds.value, metrics_, trial.sweep.value, trial.number.value);
    return;
  }
  best_metrics_.clear();
  WriteMetrics(best->metrics, best_metrics_);
  transaction.Run(
      "UPDATE trials SET step = ?, seconds = seconds_before + ?, metrics = ?, best = ?,"
      " best_step = ?, best_metrics = ? WHERE sweep = ? AND number = ?",
      last.step.value, last.seconds.value, metrics_, *entry.best, best->step.value, best_metrics_,
      trial.sweep.value, trial.number.value);
}

Progress::Entry& Progress::EntryOf(sqlite::Transaction& transaction, const TrialId& trial) {
  const auto [place, added] = trials_.try_emplace(trial);
  if (!added) return place->second;
  sqlite::Rows rows =
      transaction.connection().Query("SELECT best FROM trials WHERE sweep = ? AND number = ?",
                                     trial.sweep.value, trial.number.value);
  if (rows.Next() && !rows.Null(0)) place->second.best = rows.Real(0);
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return place->second;
}

const Objective& Progress::ObjectiveOf(sqlite::Transaction& transaction, SweepId sweep) {
  const auto [place, added] = objectives_.try_emplace(sweep);
  if (!added) return place->second;
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT metric, mode FROM sweeps WHERE sweep = ?", sweep.value);
  if (rows.Next())
    place->second = {std::string(rows.Text(0)), rows.Text(1) == "max" ? Mode::kMax : Mode::kMin};
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return place->second;
}

}  // namespace attune::server

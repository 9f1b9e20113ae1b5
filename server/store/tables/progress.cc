#include "server/store/tables/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "json/parse.h"
#include "server/store/event_log.h"
#include "server/store/json.h"
#include "server/store/measured_form.h"

namespace attune::server {
namespace {

// SQLite has no NaN, and the column does not allow NULL.
double FiniteOrZero(Seconds seconds) { return std::isnan(seconds.value) ? 0 : seconds.value; }

}  // namespace

void Progress::Add(sqlite::Transaction& transaction, EventSeq seq, const TrialReported& fact) {
  const TrialId& trial = fact.attempt.trial;
  Entry& entry = EntryOf(transaction, trial);
  if (!std::exchange(entry.listed, true)) changed_.push_back(trial);
  entry.last = seq;

  const Goals* const known = GoalsOf(transaction, trial.sweep);
  if (known == nullptr) return;
  const Goals& goals = *known;
  auto values = ValuesThatCount(goals.objectives, goals.constraints, fact.report.metrics);
  if (values.empty()) return;
  const double value = values.front();
  front_.Offer(transaction, goals.objectives, seq, fact, std::move(values));
  if (entry.best && !goals.objectives.front().Better(value, *entry.best)) return;
  entry.best = value;
  entry.best_report = seq;
}

void Progress::Write(sqlite::Transaction& transaction, const TrialId& trial) {
  if (const auto found = trials_.find(trial); found != trials_.end())
    WriteRowOf(transaction, trial, found->second);
}

void Progress::WriteSome(sqlite::Transaction& transaction, EventSeq last, size_t rows,
                         const WriteRow& write) {
  while (rows > 0 && (place_ < round_.size() || NextRound(last))) {
    const TrialId trial = round_[place_++];
    const auto found = trials_.find(trial);
    if (found == trials_.end()) continue;
    found->second.listed = false;
    if (found->second.last == EventSeq(0)) continue;
    write(trial);
    --rows;
  }
  if (!HasWork()) {
    clean_ = last;
    if (std::exchange(behind_, false)) transaction.Run("DELETE FROM @behind");
  } else if (!behind_ || said_ != clean_) {
    transaction.Run("INSERT OR REPLACE INTO @behind (one, seq) VALUES (1, ?)", clean_.value);
    behind_ = true;
    said_ = clean_;
  }
}

// Starts the next round. Returns whether it has anything to write.
bool Progress::NextRound(EventSeq last) {
  clean_ = std::max(clean_, round_began_);
  round_began_ = last;
  round_ = std::exchange(changed_, {});
  std::ranges::sort(round_);
  place_ = 0;
  return !round_.empty();
}

void Progress::Begin(EventSeq seq, bool behind) {
  clean_ = said_ = seq;
  behind_ = behind;
}

void Progress::ForgetAll() { *this = {}; }

void Progress::WriteRowOf(sqlite::Transaction& transaction, const TrialId& trial, Entry& entry) {
  if (entry.last == EventSeq(0)) return;
  const EventSeq last_seq = std::exchange(entry.last, EventSeq(0));
  const EventSeq best_seq = std::exchange(entry.best_report, EventSeq(0));
  const auto last = ReportAt(transaction, last_seq);
  if (!last.ok()) return transaction.Fail(last.error());
  metrics_.clear();
  WriteMetrics(last->metrics, metrics_);
  if (best_seq == EventSeq(0)) {
    transaction.Run(
        "UPDATE @trials SET step = ?, seconds = seconds_before + ?, metrics = ?"
        " WHERE sweep = ? AND number = ?",
        last->step.value, FiniteOrZero(last->seconds), metrics_, trial.sweep.value,
        trial.number.value);
    return;
  }
  const auto best = best_seq == last_seq ? last : ReportAt(transaction, best_seq);
  if (!best.ok()) return transaction.Fail(best.error());
  best_metrics_.clear();
  WriteMetrics(best->metrics, best_metrics_);
  transaction.Run(
      "UPDATE @trials SET step = ?, seconds = seconds_before + ?, metrics = ?, best = ?,"
      " best_step = ?, best_metrics = ? WHERE sweep = ? AND number = ?",
      last->step.value, FiniteOrZero(last->seconds), metrics_, *entry.best, best->step.value,
      best_metrics_, trial.sweep.value, trial.number.value);
}

void Progress::Forget(SweepId sweep) {
  goals_.erase(sweep);
  front_.Forget(sweep);
}

Progress::Entry& Progress::EntryOf(sqlite::Transaction& transaction, const TrialId& trial) {
  const auto [place, added] = trials_.try_emplace(trial);
  if (!added) return place->second;
  sqlite::Rows rows =
      transaction.connection().Query("SELECT best FROM @trials WHERE sweep = ? AND number = ?",
                                     trial.sweep.value, trial.number.value);
  if (rows.Next() && !rows.Null(0)) place->second.best = rows.Real(0);
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return place->second;
}

const Progress::Goals* Progress::GoalsOf(sqlite::Transaction& transaction, SweepId sweep) {
  if (const auto known = goals_.find(sweep); known != goals_.end()) return &known->second;
  Goals goals;
  sqlite::Rows rows =
      transaction.connection().Query("SELECT spec FROM @sweeps WHERE sweep = ?", sweep.value);
  if (rows.Next()) {
    auto spec = sweepfile::SpecFromJson(ParseJson<Json>(rows.Text(0)));
    if (!spec.ok()) {
      transaction.Fail(spec.error());
      return nullptr;
    }
    goals = {std::move(spec->objectives), std::move(spec->constraints)};
  }
  if (!rows.status().ok()) {
    transaction.Fail(rows.status().error());
    return nullptr;
  }
  return &goals_.emplace(sweep, std::move(goals)).first->second;
}

}  // namespace attune::server

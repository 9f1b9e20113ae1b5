#include "server/store/tables/front_table.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "json/parse.h"
#include "server/store/columns.h"
#include "server/store/event_log.h"
#include "server/store/json.h"
#include "server/store/measured_form.h"

namespace attune::server {
namespace {

CheckpointId PlaceOf(SweepId sweep, const Best& report) {
  return {{sweep, report.trial}, report.attempt, report.step};
}

bool HasReport(const Front& front, const Best& report) {
  return std::ranges::any_of(front, [&](const Best& known) {
    return known.trial == report.trial && known.attempt == report.attempt &&
           known.step == report.step;
  });
}

// Parses the values of a report; empty if the text is damaged.
std::vector<double> ValuesOf(std::string_view text) {
  std::vector<double> values;
  const Json json = ParseJson<Json>(text);
  if (!json.is_array()) return values;
  for (const Json& value : json) {
    if (!value.is_number()) return {};
    values.push_back(value.get<double>());
  }
  return values;
}

}  // namespace

void FrontTable::Offer(sqlite::Transaction& transaction, const std::vector<Objective>& objectives,
                       EventSeq seq, const TrialReported& fact, std::vector<double> values) {
  const SweepId sweep = fact.attempt.trial.sweep;
  Entry* const known = EntryOf(transaction, objectives.size(), sweep);
  if (known == nullptr) return;
  Entry& entry = *known;
  Best report{.trial = fact.attempt.trial.number,
              .attempt = fact.attempt.number,
              .step = fact.report.step,
              .values = std::move(values)};
  const FrontChange change = attune::AddToFront(objectives, std::move(report), entry.now);
  if (!change.joined) return;
  for (const Best& left : change.left) entry.fresh.erase(PlaceOf(sweep, left));
  entry.fresh[PlaceOf(sweep, entry.now.back())] = seq;
  entry.changed = true;
}

void FrontTable::Write(sqlite::Transaction& transaction) {
  for (auto& [sweep, entry] : fronts_) {
    if (std::exchange(entry.changed, false)) Write(transaction, sweep, entry);
  }
}

void FrontTable::Write(sqlite::Transaction& transaction, SweepId sweep, Entry& entry) {
  for (const Best& left : entry.written) {
    if (HasReport(entry.now, left)) continue;
    transaction.Run("DELETE FROM @front WHERE sweep = ? AND trial = ? AND attempt = ? AND step = ?",
                    sweep.value, left.trial.value, left.attempt, left.step.value);
  }
  for (const Best& report : entry.now) {
    const auto fresh = entry.fresh.find(PlaceOf(sweep, report));
    if (fresh == entry.fresh.end()) continue;
    const auto reported = ReportAt(transaction, fresh->second);
    if (!reported.ok()) return transaction.Fail(reported.error());
    std::string metrics;
    WriteMetrics(reported->metrics, metrics);
    transaction.Run(
        "INSERT INTO @front (seq, sweep, trial, attempt, step, objectives, metrics)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        fresh->second.value, sweep.value, report.trial.value, report.attempt, report.step.value,
        Dump(Json(report.values)), metrics);
  }
  entry.written = entry.now;
  entry.fresh.clear();
}

FrontTable::Entry* FrontTable::EntryOf(sqlite::Transaction& transaction, size_t objectives,
                                       SweepId sweep) {
  if (const auto known = fronts_.find(sweep); known != fronts_.end()) return &known->second;
  Entry entry;
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT trial, attempt, step, objectives FROM @front WHERE sweep = ? ORDER BY seq",
      sweep.value);
  while (rows.Next()) {
    auto values = ValuesOf(rows.Text(3));
    if (values.size() != objectives) {
      transaction.Fail({ErrorCode::kInternal,
                        "the table front cannot be read: objectives of sweep " + ToString(sweep)});
      return nullptr;
    }
    entry.now.push_back({.trial = TrialNumberAt(rows, 0),
                         .attempt = static_cast<uint32_t>(rows.Integer(1)),
                         .step = Step(rows.Integer(2)),
                         .values = std::move(values)});
  }
  if (!rows.status().ok()) {
    transaction.Fail(rows.status().error());
    return nullptr;
  }
  entry.written = entry.now;
  return &fronts_.emplace(sweep, std::move(entry)).first->second;
}

}  // namespace attune::server

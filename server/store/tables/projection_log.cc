#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/tables/projection.h"
#include "server/store/tables/tables.h"

// Keeps the tables up to date with the log. projection.cc contains the changes of each fact.
namespace attune::server {
namespace {

constexpr size_t kRowsPerStep = 512;  // rows per step; a command waits at most 10 ms for a step
constexpr size_t kAllRows = std::numeric_limits<size_t>::max();

}  // namespace

bool Projection::IsTableError(const Error& error) {
  switch (error.code) {
    case ErrorCode::kStorageFull:
    case ErrorCode::kUnsynced:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDenied:
    case ErrorCode::kCorrupt:
      return false;
    default:
      return true;
  }
}

void Projection::Apply(sqlite::Transaction& transaction, std::span<const Event> batch,
                       EventSeq after, EventSeq last, ErrorMode mode) {
  if (!transaction.status().ok()) return;
  if (!caught_up_) CatchUp(transaction, after, mode);
  for (const Event& event : batch) {
    if (mode == ErrorMode::kStop) {
      Change(transaction, event);
      continue;
    }
    // The change may also write the trial's reports. Writes them first, because they would be lost
    // if the change is undone. Measured values write no reports.
    const auto trial = TrialOf(event.fact);
    if (trial && !std::holds_alternative<TrialReported>(event.fact) &&
        !std::holds_alternative<MetricsLogged>(event.fact))
      Show(transaction, event.seq, [&] { progress_.Write(transaction, *trial); });
    Show(transaction, event.seq, [&] { Change(transaction, event); });
  }
  WriteRows(transaction, last, std::max(kProgressRows, batch.size() / kEventsPerProgressRow), mode);
  if (mode == ErrorMode::kStop) {
    progress_.WriteFronts(transaction);
  } else {
    Show(transaction, last, [&] { progress_.WriteFronts(transaction); });
  }
  for (const Event& event : batch) {
    if (const auto* ended = std::get_if<SweepEnded>(&event.fact)) progress_.Forget(ended->sweep);
  }
  IndexCurves(transaction, after, last);
}

void Projection::Show(sqlite::Transaction& transaction, EventSeq seq,
                      const std::function<void()>& change) {
  const Status shown = transaction.Try(change);
  if (shown.ok() || !transaction.status().ok()) return;
  if (!IsTableError(shown.error())) return transaction.Fail(shown.error());
  transaction.Run("INSERT OR IGNORE INTO @unshown (seq, reason, retry) VALUES (?, ?, ?)", seq.value,
                  shown.error().message, !rebuilding_);
}

void Projection::WriteRows(sqlite::Transaction& transaction, EventSeq last, size_t rows,
                           ErrorMode mode) {
  progress_.WriteSome(transaction, last, rows, [&](const TrialId& trial) {
    if (mode == ErrorMode::kStop) return progress_.Write(transaction, trial);
    Show(transaction, last, [&] { progress_.Write(transaction, trial); });
  });
}

void Projection::WriteSome(sqlite::Transaction& transaction, EventSeq last) {
  WriteRows(transaction, last, kRowsPerStep, ErrorMode::kSkip);
}

void Projection::WriteAll(sqlite::Transaction& transaction, EventSeq last) {
  WriteRows(transaction, last, kAllRows, ErrorMode::kSkip);
}

void Projection::CatchUp(sqlite::Transaction& transaction, EventSeq last, ErrorMode mode) {
  caught_up_ = true;
  std::optional<EventSeq> behind;
  {
    sqlite::Rows rows = transaction.connection().Query("SELECT seq FROM @behind");
    if (rows.Next()) behind = EventSeq(static_cast<uint64_t>(rows.Integer(0)));
    if (!rows.status().ok()) return transaction.Fail(rows.status().error());
  }
  {
    sqlite::Rows rows =
        transaction.connection().Query("SELECT offset_us FROM @clock ORDER BY seq DESC LIMIT 1");
    clock_offset_us_ = rows.Next() ? rows.Integer(0) : 0;
    if (!rows.status().ok()) return transaction.Fail(rows.status().error());
  }
  progress_.Begin(behind.value_or(last), behind.has_value());
  if (!behind) return;
  const Status read = ReadLog(transaction.connection(), *behind, last, [&](const Event& event) {
    if (const auto* report = std::get_if<TrialReported>(&event.fact)) {
      const auto add = [&] { progress_.Add(transaction, event.seq, *report); };
      if (mode == ErrorMode::kStop) return add();
      Show(transaction, event.seq, add);
    } else if (std::holds_alternative<AttemptAssigned>(event.fact) ||
               std::holds_alternative<AttemptEnded>(event.fact)) {
      progress_.Forget(*TrialOf(event.fact));  // these events have written its row
    }
  });
  if (!read.ok()) transaction.Fail(read.error());
}

void Projection::Forget() {
  progress_.ForgetAll();
  logged_.clear();
  caught_up_ = false;
}

// ---- Measured values -----------------------------------------------------------------------

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const MetricsLogged& fact) {
  const SweepId sweep = fact.attempt.trial.sweep;
  std::set<std::string, std::less<>>& known = LoggedMetricsOf(transaction, sweep);
  for (const auto& [name, value] : fact.metrics) {
    if (known.size() >= kLoggedMetricsMax || !known.insert(name).second) continue;
    transaction.Run("INSERT INTO @logged_metrics (sweep, name) VALUES (?, ?)", sweep.value, name);
  }
  if (!transaction.status().ok()) logged_.erase(sweep);  // read the names again next time
}

std::set<std::string, std::less<>>& Projection::LoggedMetricsOf(sqlite::Transaction& transaction,
                                                                SweepId sweep) {
  const auto [place, added] = logged_.try_emplace(sweep);
  if (!added) return place->second;
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT name FROM @logged_metrics WHERE sweep = ?", sweep.value);
  while (rows.Next()) place->second.emplace(rows.Text(0));
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return place->second;
}

void Projection::IndexCurves(sqlite::Transaction& transaction, EventSeq after, EventSeq last) {
  const uint64_t begin = after.value / kCurveIndexEvery * kCurveIndexEvery;
  const uint64_t end = last.value / kCurveIndexEvery * kCurveIndexEvery;
  if (begin == end) return;
  const auto index = [&](const std::string& table, std::string_view kind) {
    transaction.Run("INSERT INTO @" + table +
                        " (sweep, trial, seq) SELECT sweep, trial, seq FROM events"
                        " WHERE seq > ? AND seq <= ? AND kind = ?"
                        " AND sweep IN (SELECT sweep FROM @sweeps) ORDER BY sweep, trial, seq",
                    begin, end, kind);
  };
  index("report_index", TrialReported::kRow.info.kind);
  // If no metric is logged, the events need not be scanned again.
  const auto logged = transaction.connection().Number("SELECT count(*) FROM @logged_metrics");
  if (!logged.ok()) return transaction.Fail(logged.error());
  if (*logged > 0) index("logged_index", MetricsLogged::kRow.info.kind);
}

}  // namespace attune::server

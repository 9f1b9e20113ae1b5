#include "server/store/thinned/curve_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/result.h"
#include "server/store/columns.h"
#include "server/store/event_log.h"
#include "server/store/measured_form.h"

namespace attune::server {
namespace {

constexpr int kLogTimeoutMs = 5'000;

// Events of one query. A query keeps SQLite from reusing its log file, so it must be short.
constexpr uint64_t kEventsPerQuery = 4'096;

// Reads the events that change the table.
std::string FollowedEventsSql() {
  return "SELECT seq, sweep, trial, time, kind, version, payload FROM events"
         " WHERE seq > ? AND seq <= ? AND " +
         IsOfKinds({TrialReported::kRow.info.kind, MetricsLogged::kRow.info.kind,
                    AttemptAssigned::kRow.info.kind, SweepDeleted::kRow.info.kind,
                    LogIdentified::kRow.info.kind}) +
         " ORDER BY seq";
}

// Whether an assigned attempt starts without a checkpoint, in the form in which the log stores it.
// Other forms must be decoded to find out.
bool StartsFromScratch(std::string_view assigned) {
  return assigned.find(R"("resume":null)") != std::string_view::npos;
}

EventSeq SeqOf(const sqlite::Rows& rows) {
  return EventSeq(static_cast<uint64_t>(rows.Integer(0)));
}

TrialId TrialOf(const sqlite::Rows& rows) {
  return {SweepId(static_cast<uint64_t>(rows.Integer(1))), TrialNumberAt(rows, 2)};
}

uint64_t InodeOf(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

// Whether the file has followed this log, up to an event that the log has.
bool FollowsLog(const FollowedLog& followed, LogIdentity identity, EventSeq last) {
  return followed.seq <= last && (followed.seq.value == 0 || followed.identity == identity);
}

// Opens the file if it belongs to the log; null if another one must be made.
Result<std::unique_ptr<sqlite::Connection>> OpenFileOf(const std::string& path,
                                                       LogIdentity identity, EventSeq last) {
  auto file = OpenCurveFile(path, sqlite::Connection::Mode::kReadWriteCreate);
  if (!file.ok()) {
    const ErrorCode code = file.error().code;
    if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) return file.error();
    return std::unique_ptr<sqlite::Connection>();
  }
  const auto followed = ReadFollowed(**file);
  if (followed.ok() && FollowsLog(*followed, identity, last)) return file;
  return std::unique_ptr<sqlite::Connection>();
}

}  // namespace

Result<std::unique_ptr<CurveTable>> CurveTable::Open(const std::string& database,
                                                     LogIdentity identity, EventSeq last) {
  auto log = sqlite::Connection::Open(database, sqlite::Connection::Mode::kReadOnly, kLogTimeoutMs);
  if (!log.ok()) return log.error();
  const std::string path = CurveFileOf(database);
  auto file = OpenFileOf(path, identity, last);
  if (file.ok() && *file == nullptr) {
    if (Status created = CreateCurveFile(path); !created.ok()) return created.error();
    file = OpenCurveFile(path, sqlite::Connection::Mode::kReadWriteCreate);
  }
  if (!file.ok()) return file.error();
  auto followed = ReadFollowed(**file);
  if (!followed.ok()) return followed.error();
  followed->identity = identity;
  return std::unique_ptr<CurveTable>(
      new CurveTable(path, std::move(log).value(), std::move(file).value(), *followed, last));
}

CurveTable::CurveTable(std::string path, std::unique_ptr<sqlite::Connection> log,
                       std::unique_ptr<sqlite::Connection> file, const FollowedLog& followed,
                       EventSeq opened_at)
    : path_(std::move(path)),
      log_(std::move(log)),
      file_(std::move(file)),
      inode_(InodeOf(path_)),
      opened_at_(opened_at),
      followed_(followed) {}

bool CurveTable::IsInPlace() const { return InodeOf(path_) == inode_; }

Result<bool> CurveTable::Read(EventSeq last, uint64_t limit) {
  static const std::string kSql = FollowedEventsSql();
  const EventSeq end(std::min(last.value, followed_.seq.value + limit));
  // Takes the lock of the file once, and not for each trial that is loaded.
  const sqlite::Transaction transaction(*file_, sqlite::Transaction::Kind::kRead);
  while (followed_.seq < end) {
    const EventSeq until(std::min(end.value, followed_.seq.value + kEventsPerQuery));
    sqlite::Rows rows = log_->Query(kSql, followed_.seq.value, until.value);
    while (rows.Next()) {
      if (Status read = ReadRow(rows); !read.ok()) return read.error();
    }
    if (!rows.status().ok()) return rows.status().error();
    followed_.seq = until;
  }
  return followed_.seq < last;
}

Status CurveTable::ReadRow(const sqlite::Rows& rows) {
  const std::string_view kind = rows.Text(4);
  const bool is_report = kind == TrialReported::kRow.info.kind;
  if (is_report || kind == MetricsLogged::kRow.info.kind) return ReadMeasured(rows, is_report);
  if (kind == AttemptAssigned::kRow.info.kind && StartsFromScratch(rows.Text(6))) return {};

  const auto event = EventOf(rows);
  if (!event.ok()) return event.error();
  if (const auto* assigned = std::get_if<AttemptAssigned>(&event->fact)) {
    if (!assigned->resume) return {};
    auto trial = ChangedTrial(assigned->attempt.trial, event->seq);
    if (!trial.ok()) return trial.error();
    (*trial)->attempt = assigned->attempt.number;
    (*trial)->resumed_from = assigned->resume->step.value;
    (*trial)->attempt_changed = true;
  } else if (const auto* deleted = std::get_if<SweepDeleted>(&event->fact)) {
    Delete(deleted->sweep);
  } else if (const auto* identified = std::get_if<LogIdentified>(&event->fact)) {
    // Earlier ones were followed by the identity with which the table was opened.
    if (event->seq > opened_at_) followed_.identity = identified->identity;
  }
  return {};
}

Status CurveTable::ReadMeasured(const sqlite::Rows& rows, bool is_report) {
  auto trial = ChangedTrial(TrialOf(rows), SeqOf(rows));
  if (!trial.ok()) return trial.error();
  MeasuredScanner scanner(rows.Text(6));
  measured_.clear();
  while (scanner.NextMetric()) measured_.emplace_back(scanner.name(), scanner.value());
  if (scanner.ok()) {
    const double step = is_report ? static_cast<double>(scanner.count()) : scanner.real();
    for (const auto& [metric, value] : measured_)
      Add(**trial, metric, is_report, scanner.attempt(), step, value);
    return {};
  }
  const auto event = EventOf(rows);  // not in the form that the scanner reads
  if (!event.ok()) return event.error();
  if (const auto* logged = std::get_if<MetricsLogged>(&event->fact)) {
    for (const auto& [metric, value] : logged->metrics)
      Add(**trial, metric, false, logged->attempt.number, logged->step, value);
    return {};
  }
  const auto& [attempt, report] = std::get<TrialReported>(event->fact);
  for (const auto& [metric, value] : report.metrics)
    Add(**trial, metric, true, attempt.number, static_cast<double>(report.step.value), value);
  return {};
}

void CurveTable::Add(Trial& trial, std::string_view metric, bool is_report, uint32_t attempt,
                     double step, double value) {
  auto found = trial.metrics.find(metric);
  if (found == trial.metrics.end()) {
    found = trial.metrics.emplace(metric, MetricCurves()).first;
    bytes_ += sizeof(MetricCurves) + metric.size();
  }
  MetricCurves& curves = found->second;
  ThinnedCurve& curve = is_report ? curves.reported : curves.logged;
  const size_t before = curve.bytes();
  if (is_report) {
    const int64_t resumed_from = attempt == trial.attempt ? trial.resumed_from : 0;
    curve.AddReport(attempt, resumed_from, static_cast<int64_t>(step), value);
    curves.reported_changed = true;
  } else {
    curve.AddLogged(step, value);
    curves.logged_changed = true;
  }
  bytes_ += curve.bytes() - before;
}

// The trial in memory, read from the file if needed. It counts as changed by this event.
Result<CurveTable::Trial*> CurveTable::ChangedTrial(const TrialId& id, EventSeq seq) {
  auto found = trials_.find(id);
  if (found == trials_.end()) {
    found = trials_.emplace(id, Trial()).first;
    bytes_ += sizeof(Trial);
    if (Status loaded = Load(id, found->second); !loaded.ok()) return loaded.error();
  }
  changed_.insert(id);
  found->second.changed = seq;
  return &found->second;
}

Status CurveTable::Load(const TrialId& id, Trial& trial) {
  if (deleted_.contains(id.sweep)) return {};
  {
    sqlite::Rows rows =
        file_->Query("SELECT attempt, resumed_from FROM attempts WHERE sweep = ? AND trial = ?",
                     id.sweep.value, id.number.value);
    if (rows.Next()) {
      trial.attempt = static_cast<uint32_t>(rows.Integer(0));
      trial.resumed_from = rows.Integer(1);
    }
    if (!rows.status().ok()) return rows.status();
  }
  sqlite::Rows rows =
      file_->Query("SELECT metric, logged, points FROM curves WHERE sweep = ? AND trial = ?",
                   id.sweep.value, id.number.value);
  while (rows.Next()) {
    auto curve = ThinnedCurve::FromBytes(rows.Bytes(2));
    if (!curve)
      return Error{ErrorCode::kCorrupt, path_ + " has a damaged curve of trial " + ToString(id)};
    const auto [entry, is_new] = trial.metrics.emplace(std::string(rows.Text(0)), MetricCurves());
    if (is_new) bytes_ += sizeof(MetricCurves) + entry->first.size();
    ThinnedCurve& place = rows.Integer(1) != 0 ? entry->second.logged : entry->second.reported;
    place = *std::move(curve);
    bytes_ += place.bytes() - ThinnedCurve().bytes();
  }
  return rows.status();
}

size_t CurveTable::BytesOf(const Trial& trial) {
  size_t bytes = sizeof(Trial);
  for (const auto& [metric, curves] : trial.metrics)
    bytes += metric.size() + sizeof(MetricCurves) + curves.reported.bytes() +
             curves.logged.bytes() - 2 * sizeof(ThinnedCurve);
  return bytes;
}

void CurveTable::Delete(SweepId sweep) {
  const auto begin = trials_.lower_bound(TrialId(sweep, TrialNumber(0)));
  const auto end = trials_.lower_bound(TrialId(SweepId(sweep.value + 1), TrialNumber(0)));
  for (auto each = begin; each != end; ++each) {
    bytes_ -= BytesOf(each->second);
    changed_.erase(each->first);
  }
  trials_.erase(begin, end);
  deleted_.insert(sweep);
}

Status CurveTable::Write(bool built) {
  FollowedLog followed = followed_;
  followed.built = followed.built || built;
  // Deleted values are overwritten, as in the database.
  if (!deleted_.empty()) {
    if (Status set = file_->Execute("PRAGMA secure_delete = ON"); !set.ok()) return set;
  }
  sqlite::Transaction transaction(*file_, sqlite::Transaction::Kind::kWrite);
  for (const SweepId sweep : deleted_) {
    transaction.Run("DELETE FROM curves WHERE sweep = ?", sweep.value);
    transaction.Run("DELETE FROM attempts WHERE sweep = ?", sweep.value);
  }
  for (const TrialId& id : changed_) WriteTrial(transaction, id, trials_.at(id));
  WriteFollowed(transaction, followed);
  if (Status written = transaction.Commit(); !written.ok()) return written;
  if (!deleted_.empty()) {
    if (Status set = file_->Execute("PRAGMA secure_delete = OFF"); !set.ok()) return set;
  }
  followed_ = followed;
  deleted_.clear();
  changed_.clear();
  return {};
}

void CurveTable::WriteTrial(sqlite::Transaction& transaction, const TrialId& id, Trial& trial) {
  const auto write = [&](const std::string& metric, bool logged, const ThinnedCurve& curve) {
    const std::string bytes = curve.ToBytes();
    transaction.Run(
        "INSERT INTO curves (sweep, trial, metric, logged, points) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET points = excluded.points",
        id.sweep.value, id.number.value, metric, logged ? 1 : 0, sqlite::Blob{bytes});
  };
  for (auto& [metric, curves] : trial.metrics) {
    if (std::exchange(curves.reported_changed, false)) write(metric, false, curves.reported);
    if (std::exchange(curves.logged_changed, false)) write(metric, true, curves.logged);
  }
  if (!std::exchange(trial.attempt_changed, false)) return;
  transaction.Run(
      "INSERT OR REPLACE INTO attempts (sweep, trial, attempt, resumed_from) VALUES (?, ?, ?, ?)",
      id.sweep.value, id.number.value, trial.attempt, trial.resumed_from);
}

void CurveTable::Forget(size_t most) {
  if (bytes_ <= most) return;
  std::vector<std::pair<EventSeq, TrialId>> oldest;
  for (const auto& [id, trial] : trials_) oldest.emplace_back(trial.changed, id);
  std::ranges::sort(oldest);
  for (const auto& [changed, id] : oldest) {
    if (bytes_ <= most) return;
    const auto found = trials_.find(id);
    bytes_ -= BytesOf(found->second);
    trials_.erase(found);
  }
}

}  // namespace attune::server

#include "server/store/reader.h"

#include <limits>
#include <utility>

#include "server/store/event_log.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/report_form.h"

namespace attune::server {
namespace {

constexpr int kBusyTimeoutMs = 5'000;  // readers wait only while the log file is being reset

Error NoSweep(SweepId id) { return {ErrorCode::kNotFound, "there is no sweep " + ToString(id)}; }

Error NoTrial(const TrialId& id) {
  return {ErrorCode::kNotFound, "there is no trial " + ToString(id)};
}

std::optional<double> OptionalReal(const sqlite::Rows& rows, int column) {
  if (rows.Null(column)) return std::nullopt;
  return rows.Real(column);
}

Json ParseColumn(const sqlite::Rows& rows, int column) { return Json::parse(rows.Text(column)); }

Config ConfigColumn(const sqlite::Rows& rows, int column) {
  return ValueOrThrow(sweepfile::ConfigFromJson(ParseColumn(rows, column)));
}

Metrics MetricsColumn(const sqlite::Rows& rows, int column) {
  return ValueOrThrow(sweepfile::MetricsFromJson(ParseColumn(rows, column)));
}

Result<int64_t> LastSeqOf(sqlite::Connection& connection) {
  return connection.Number("SELECT max(seq) FROM events");
}

// ---- Sweeps --------------------------------------------------------------------------------

Status ReadCounts(sqlite::Connection& connection, SweepRow& sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT state, trials FROM trial_counts WHERE sweep = ? AND trials > 0", sweep.id.value);
  while (rows.Next()) sweep.trials.emplace(rows.Text(0), rows.Integer(1));
  return rows.status();
}

Status ReadFront(sqlite::Connection& connection, SweepRow& sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT f.trial, f.step, f.objectives, t.config, f.metrics,"
      " coalesce((SELECT path FROM checkpoints AS c WHERE c.sweep = f.sweep AND c.trial = f.trial"
      "           AND c.step = f.step AND c.dropped IS NULL ORDER BY attempt DESC LIMIT 1),"
      "          t.checkpoint)"
      " FROM front AS f JOIN trials AS t ON t.sweep = f.sweep AND t.number = f.trial"
      " WHERE f.sweep = ? ORDER BY f.seq",
      sweep.id.value);
  while (rows.Next()) {
    sweep.front.push_back({.trial = TrialNumber(static_cast<uint32_t>(rows.Integer(0))),
                           .step = Step(rows.Integer(1)),
                           .values = ParseColumn(rows, 2).get<std::vector<double>>(),
                           .config = ConfigColumn(rows, 3),
                           .metrics = MetricsColumn(rows, 4),
                           .checkpoint = rows.OptionalText(5)});
  }
  return rows.status();
}

std::optional<SweepEdit> EditOfRow(const sqlite::Rows& rows) {
  if (rows.Null(8)) return std::nullopt;
  return SweepEdit{.time = std::string(rows.Text(8)),
                   .actor = std::string(rows.Text(9)),
                   .changes = ParseColumn(rows, 10).get<std::vector<std::string>>()};
}

SweepRow SweepOfRow(const sqlite::Rows& rows) {
  return {.id = SweepId(static_cast<uint64_t>(rows.Integer(0))),
          .state = std::string(rows.Text(1)),
          .reason = std::string(rows.Text(2)),
          .created = std::string(rows.Text(3)),
          .ended = rows.OptionalText(4),
          .reserved = rows.OptionalText(6),
          .owner = std::string(rows.Text(7)),
          .spec = ValueOrThrow(sweepfile::SpecFromJson(ParseColumn(rows, 5))),
          .edit = EditOfRow(rows)};
}

// Newest first, both ends included, with what is counted over their trials.
Result<std::vector<SweepRow>> ReadSweeps(sqlite::Connection& connection, SweepId first,
                                         SweepId last, int limit) {
  std::vector<SweepRow> sweeps;
  {
    sqlite::Rows rows = connection.Query(
        "SELECT sweep, state, reason, created, ended, spec, reserved, owner, edited, edited_by,"
        " changes FROM sweeps"
        " WHERE sweep BETWEEN ? AND ? ORDER BY sweep DESC LIMIT ?",
        first.value, last.value, limit);
    while (rows.Next()) sweeps.push_back(SweepOfRow(rows));
    if (!rows.status().ok()) return rows.status().error();
  }
  for (SweepRow& sweep : sweeps) {
    if (Status read = ReadCounts(connection, sweep); !read.ok()) return read.error();
    if (Status read = ReadFront(connection, sweep); !read.ok()) return read.error();
  }
  return sweeps;
}

Status CheckSweep(sqlite::Connection& connection, SweepId id) {
  sqlite::Rows rows = connection.Query("SELECT 1 FROM sweeps WHERE sweep = ?", id.value);
  if (!rows.Next() && rows.status().ok()) return NoSweep(id);
  return rows.status();
}

// ---- Trials --------------------------------------------------------------------------------

TrialRow TrialOfRow(const sqlite::Rows& rows) {
  return {.id = {SweepId(static_cast<uint64_t>(rows.Integer(0))),
                 TrialNumber(static_cast<uint32_t>(rows.Integer(1)))},
          .state = std::string(rows.Text(2)),
          .reason = std::string(rows.Text(3)),
          .config = ConfigColumn(rows, 4),
          .created = std::string(rows.Text(5)),
          .ended = rows.OptionalText(6),
          .not_before = rows.OptionalText(14),
          .attempts = static_cast<uint32_t>(rows.Integer(7)),
          .step = Step(rows.Integer(8)),
          .milestone = Step(rows.Integer(9)),
          .seconds = Seconds(rows.Real(10)),
          .metrics = MetricsColumn(rows, 11),
          .best = OptionalReal(rows, 12),
          .checkpoint = rows.OptionalText(13)};
}

Result<std::vector<TrialRow>> ReadTrials(sqlite::Connection& connection, SweepId sweep,
                                         TrialNumber first, int limit) {
  sqlite::Rows rows = connection.Query(
      "SELECT sweep, number, state, reason, config, created, ended, attempts, step, milestone,"
      " seconds, metrics, best, checkpoint, not_before FROM trials"
      " WHERE sweep = ? AND number >= ? ORDER BY number LIMIT ?",
      sweep.value, first.value, limit);
  std::vector<TrialRow> trials;
  while (rows.Next()) trials.push_back(TrialOfRow(rows));
  if (!rows.status().ok()) return rows.status().error();
  return trials;
}

Result<TrialRow> ReadTrial(sqlite::Connection& connection, const TrialId& id) {
  auto trials = ReadTrials(connection, id.sweep, id.number, 1);
  if (!trials.ok()) return trials.error();
  if (trials->empty() || trials->front().id != id) return NoTrial(id);
  return std::move(trials->front());
}

Status ReadHistory(sqlite::Connection& connection, const TrialId& id,
                   std::vector<ReportRow>& history) {
  sqlite::Rows rows = connection.Query(
      "SELECT seq, sweep, trial, time, kind, version, payload FROM report_events"
      " WHERE sweep = ? AND trial = ? ORDER BY seq",
      id.sweep.value, id.number.value);
  while (rows.Next()) {
    const auto event = EventOf(rows);
    if (!event.ok()) return event.error();
    const auto& fact = std::get<TrialReported>(event->fact);
    history.push_back({event->time, fact.attempt.number, fact.report});
  }
  return rows.status();
}

struct Point {
  int64_t step = 0;
  double value = 0;
};

// A report's value of one metric, if it has that. Curves read every report of a sweep, so nothing
// else of it is kept.
Result<std::optional<Point>> PointOf(const sqlite::Rows& rows, std::string_view metric) {
  std::optional<Point> point;
  ReportScanner scanner(rows.Text(6));
  while (scanner.NextMetric()) {
    if (scanner.name() == metric) point = {scanner.step(), scanner.value()};
  }
  if (scanner.ok()) return point;

  const auto event = EventOf(rows);  // written otherwise
  if (!event.ok()) return event.error();
  const Report& report = std::get<TrialReported>(event->fact).report;
  const auto found = report.metrics.find(metric);
  if (found == report.metrics.end()) return std::optional<Point>();
  return std::optional<Point>({report.step.value, found->second});
}

AttemptRow AttemptOfRow(const sqlite::Rows& rows) {
  AttemptRow attempt{.number = static_cast<uint32_t>(rows.Integer(0)),
                     .epoch = static_cast<uint64_t>(rows.Integer(1)),
                     .state = std::string(rows.Text(2)),
                     .outcome = std::string(rows.Text(3)),
                     .failure = std::string(rows.Text(4)),
                     .executor = std::string(rows.Text(5)),
                     .ranks = std::string(rows.Text(6)),
                     .pids = std::string(rows.Text(7)),
                     .decided = std::string(rows.Text(9)),
                     .started = rows.OptionalText(10),
                     .first_step = rows.OptionalText(11),
                     .ended = rows.OptionalText(12)};
  if (!rows.Null(8)) attempt.resumed_from = rows.Integer(8);
  return attempt;
}

// From `first` on, in order.
Status ReadAttempts(sqlite::Connection& connection, const TrialId& id, uint32_t first,
                    int64_t limit, std::vector<AttemptRow>& attempts) {
  sqlite::Rows rows = connection.Query(
      "SELECT number, epoch, state, outcome, failure, executor, ranks, pids, resumed_from, decided,"
      " started, first_step, ended FROM attempts"
      " WHERE sweep = ? AND trial = ? AND number >= ? ORDER BY number LIMIT ?",
      id.sweep.value, id.number.value, first, limit);
  while (rows.Next()) attempts.push_back(AttemptOfRow(rows));
  return rows.status();
}

Status ReadDecisions(sqlite::Connection& connection, const TrialId& id,
                     std::vector<DecisionRow>& decisions) {
  sqlite::Rows rows = connection.Query(
      "SELECT time, step, verdict, reason, rule, rung, value, cutoff, rank, peers, attempt,"
      " milestone FROM decisions WHERE sweep = ? AND trial = ? ORDER BY seq",
      id.sweep.value, id.number.value);
  while (rows.Next()) {
    decisions.push_back({.attempt = static_cast<uint32_t>(rows.Integer(10)),
                         .time = std::string(rows.Text(0)),
                         .step = Step(rows.Integer(1)),
                         .verdict = std::string(rows.Text(2)),
                         .reason = std::string(rows.Text(3)),
                         .rule = std::string(rows.Text(4)),
                         .rung = Step(rows.Integer(5)),
                         .value = OptionalReal(rows, 6),
                         .cutoff = OptionalReal(rows, 7),
                         .rank = rows.Integer(8),
                         .peers = rows.Integer(9),
                         .milestone = Step(rows.Integer(11))});
  }
  return rows.status();
}

Status ReadCheckpoints(sqlite::Connection& connection, const TrialId& id,
                       std::vector<CheckpointRow>& checkpoints) {
  sqlite::Rows rows = connection.Query(
      "SELECT step, attempt, path, digest, bytes, time, pinned, dropped, removed, reason"
      " FROM checkpoints"
      " WHERE sweep = ? AND trial = ? ORDER BY step, attempt",
      id.sweep.value, id.number.value);
  while (rows.Next()) {
    checkpoints.push_back({.step = Step(rows.Integer(0)),
                           .attempt = static_cast<uint32_t>(rows.Integer(1)),
                           .path = std::string(rows.Text(2)),
                           .digest = std::string(rows.Text(3)),
                           .bytes = rows.Integer(4),
                           .time = std::string(rows.Text(5)),
                           .pinned = rows.Integer(6) != 0,
                           .dropped = rows.OptionalText(7),
                           .removed = rows.OptionalText(8),
                           .reason = std::string(rows.Text(9))});
  }
  return rows.status();
}

}  // namespace

// ---- The pool ------------------------------------------------------------------------------

// A connection for as long as one query lasts.
class Reader::Lease {
 public:
  explicit Lease(Reader& reader) : reader_(reader) {
    std::unique_lock lock(reader_.mutex_);
    reader_.returned_.wait(
        lock, [&] { return !reader_.idle_.empty() || reader_.open_ < kReadConnections; });
    if (!reader_.idle_.empty()) {
      connection_ = std::move(reader_.idle_.back());
      reader_.idle_.pop_back();
      return;
    }
    auto opened = sqlite::Connection::Open(reader_.path_, sqlite::Connection::Mode::kReadOnly,
                                           kBusyTimeoutMs);
    if (opened.ok()) {
      connection_ = std::move(opened).value();
      ++reader_.open_;
    } else {
      status_ = opened.error();
    }
  }

  ~Lease() {
    if (connection_ == nullptr) return;
    {
      const std::lock_guard lock(reader_.mutex_);
      reader_.idle_.push_back(std::move(connection_));
    }
    reader_.returned_.notify_one();
  }

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const Status& status() const { return status_; }
  sqlite::Connection& connection() { return *connection_; }

 private:
  Reader& reader_;
  std::unique_ptr<sqlite::Connection> connection_;
  Status status_;
};

template <class T, class Query>
Result<T> Reader::InSnapshot(Query query) {
  Lease lease(*this);
  if (!lease.status().ok()) return lease.status().error();
  sqlite::Transaction snapshot(lease.connection(), sqlite::Transaction::Kind::kRead);
  if (!snapshot.status().ok()) return snapshot.status().error();
  try {
    return query(lease.connection());
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorrupt, path_ + ": a column of JSON is damaged: " + error.what()};
  }
}

Result<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  std::unique_ptr<Reader> reader(new Reader(path));
  if (const auto last = reader->LastSeq(); !last.ok()) return last.error();
  return reader;
}

std::unique_ptr<Reader> Reader::At(const std::string& path) {
  return std::unique_ptr<Reader>(new Reader(path));
}

Reader::~Reader() = default;

const BestTrial* SweepRow::Best() const {
  const BestTrial* best = nullptr;
  for (const BestTrial& report : front) {
    if (best == nullptr || spec.objective().Better(report.values[0], best->values[0]))
      best = &report;
  }
  return best;
}

Result<std::vector<SweepRow>> Reader::Sweeps(std::optional<SweepId> before, int limit) {
  const SweepId last(before ? before->value - 1 : std::numeric_limits<int64_t>::max());
  return InSnapshot<std::vector<SweepRow>>([&](sqlite::Connection& connection) {
    return ReadSweeps(connection, SweepId(0), last, limit);
  });
}

Result<SweepRow> Reader::Sweep(SweepId id) {
  return InSnapshot<SweepRow>([&](sqlite::Connection& connection) -> Result<SweepRow> {
    auto sweeps = ReadSweeps(connection, id, id, 1);
    if (!sweeps.ok()) return sweeps.error();
    if (sweeps->empty()) return NoSweep(id);
    return std::move(sweeps->front());
  });
}

Result<std::string> Reader::SweepFile(SweepId id) {
  return InSnapshot<std::string>([&](sqlite::Connection& connection) -> Result<std::string> {
    sqlite::Rows rows = connection.Query(
        "SELECT json_extract(payload, '$.source') FROM events"
        " WHERE seq = (SELECT seq FROM sweeps WHERE sweep = ?)",
        id.value);
    if (rows.Next()) return std::string(rows.Text(0));
    if (!rows.status().ok()) return rows.status().error();
    return NoSweep(id);
  });
}

Result<std::vector<TrialRow>> Reader::Trials(SweepId sweep, TrialNumber first, int limit) {
  return InSnapshot<std::vector<TrialRow>>(
      [&](sqlite::Connection& connection) -> Result<std::vector<TrialRow>> {
        if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
        return ReadTrials(connection, sweep, first, limit);
      });
}

Result<TrialRow> Reader::Trial(const TrialId& id) {
  return InSnapshot<TrialRow>(
      [&](sqlite::Connection& connection) { return ReadTrial(connection, id); });
}

Result<TrialDetail> Reader::Detail(const TrialId& id) {
  return InSnapshot<TrialDetail>([&](sqlite::Connection& connection) -> Result<TrialDetail> {
    auto trial = ReadTrial(connection, id);
    if (!trial.ok()) return trial.error();
    const auto seen = LastSeqOf(connection);
    if (!seen.ok()) return seen.error();
    TrialDetail detail{.seen = EventSeq(static_cast<uint64_t>(*seen)),
                       .trial = std::move(trial).value()};
    for (const Status& read : {ReadHistory(connection, id, detail.history),
                               ReadAttempts(connection, id, 1, -1, detail.attempts),
                               ReadDecisions(connection, id, detail.decisions),
                               ReadCheckpoints(connection, id, detail.checkpoints)}) {
      if (!read.ok()) return read.error();
    }
    return detail;
  });
}

Result<AttemptRow> Reader::Attempt(const AttemptId& id) {
  return InSnapshot<AttemptRow>([&](sqlite::Connection& connection) -> Result<AttemptRow> {
    std::vector<AttemptRow> attempts;
    if (Status read = ReadAttempts(connection, id.trial, id.number, 1, attempts); !read.ok())
      return read.error();
    if (attempts.empty() || attempts.front().number != id.number)
      return Error{ErrorCode::kNotFound, "there is no attempt " + ToString(id)};
    return std::move(attempts.front());
  });
}

Result<std::optional<Event>> Reader::Requested(SweepId sweep, const std::string& key) {
  return InSnapshot<std::optional<Event>>(
      [&](sqlite::Connection& connection) -> Result<std::optional<Event>> {
        sqlite::Rows rows = connection.Query(
            "SELECT seq, sweep, trial, time, kind, version, payload FROM events"
            " WHERE seq = (SELECT seq FROM requests WHERE sweep = ? AND key = ?)",
            sweep.value, key);
        if (!rows.Next()) {
          if (!rows.status().ok()) return rows.status().error();
          return std::optional<Event>();
        }
        auto event = EventOf(rows);
        if (!event.ok()) return event.error();
        return std::optional<Event>(std::move(event).value());
      });
}

Result<Curves> Reader::CurvesOf(SweepId sweep, const std::string& metric) {
  return InSnapshot<Curves>([&](sqlite::Connection& connection) -> Result<Curves> {
    if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    Curves curves{.seq = EventSeq(static_cast<uint64_t>(*last))};
    sqlite::Rows rows = connection.Query(
        "SELECT seq, sweep, trial, time, kind, version, payload FROM report_events"
        " WHERE sweep = ? ORDER BY trial, seq",
        sweep.value);
    while (rows.Next()) {
      const auto point = PointOf(rows, metric);
      if (!point.ok()) return point.error();
      if (!*point) continue;
      const TrialNumber trial(static_cast<uint32_t>(rows.Integer(2)));
      if (curves.trials.empty() || curves.trials.back().trial != trial)
        curves.trials.push_back({.trial = trial});
      curves.trials.back().steps.push_back((*point)->step);
      curves.trials.back().values.push_back((*point)->value);
    }
    if (!rows.status().ok()) return rows.status().error();
    return curves;
  });
}

Result<EventsPage> Reader::EventsAfter(EventSeq after, std::optional<SweepId> sweep, int limit) {
  return InSnapshot<EventsPage>([&](sqlite::Connection& connection) -> Result<EventsPage> {
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    std::optional<uint64_t> only;
    if (sweep) only = sweep->value;
    sqlite::Rows rows = connection.Query(
        "SELECT seq, sweep, trial, time, kind, version, payload, actor FROM events"
        " WHERE seq > ?1 AND (?2 IS NULL OR sweep IS NULL OR sweep = ?2) ORDER BY seq LIMIT ?3",
        after.value, only, limit);
    EventsPage page;
    while (rows.Next()) {
      auto event = EventWithActorOf(rows);
      if (!event.ok()) return event.error();
      page.events.push_back(std::move(event).value());
    }
    if (!rows.status().ok()) return rows.status().error();
    const bool more = std::ssize(page.events) == limit;
    page.seen = more ? page.events.back().seq : EventSeq(static_cast<uint64_t>(*last));
    return page;
  });
}

Result<EventSeq> Reader::LastSeq() {
  return InSnapshot<EventSeq>([](sqlite::Connection& connection) -> Result<EventSeq> {
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    return EventSeq(static_cast<uint64_t>(*last));
  });
}

}  // namespace attune::server

#include "server/store/reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/result.h"
#include "core/log/request_key.h"
#include "server/store/curves.h"
#include "server/store/erased_events.h"
#include "server/store/event_log.h"
#include "server/store/failures.h"
#include "server/store/json.h"
#include "server/store/queries.h"
#include "server/store/tables/spec_column.h"
#include "server/store/tables/table_build.h"
#include "server/store/tables/tables.h"
#include "server/store/thinned/thinned_reader.h"
#include "server/store/trials/attempt_environment.h"
#include "server/store/trials/trial_list.h"
#include "server/store/usage.h"

namespace attune::server {
namespace {

constexpr int kBusyTimeoutMs = 5'000;  // readers wait only while the log file is being reset

// A connection in a snapshot that this thread holds (Reader::HoldSnapshot), while the object lives.
class HeldSnapshot {
 public:
  HeldSnapshot(const Reader& reader, sqlite::Connection& connection)
      : reader_(reader), connection_(connection) {
    held_ = this;
  }
  ~HeldSnapshot() { held_ = nullptr; }
  HeldSnapshot(const HeldSnapshot&) = delete;
  HeldSnapshot& operator=(const HeldSnapshot&) = delete;

  // Null if this thread holds no snapshot of the reader.
  static sqlite::Connection* ConnectionOf(const Reader& reader) {
    return held_ != nullptr && &held_->reader_ == &reader ? &held_->connection_ : nullptr;
  }

 private:
  static thread_local HeldSnapshot* held_;
  const Reader& reader_;
  sqlite::Connection& connection_;
};

thread_local HeldSnapshot* HeldSnapshot::held_ = nullptr;

}  // namespace

// ---- The pool ------------------------------------------------------------------------------

// Holds a connection for the duration of one query.
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
  return QueryLog<T>([&](sqlite::Connection& connection) -> Result<T> {
    if (Status there = CheckTables(connection); !there.ok()) return there.error();
    return query(connection);
  });
}

template <class T, class Query>
Result<T> Reader::QueryLog(Query query) {
  try {
    if (sqlite::Connection* held = HeldSnapshot::ConnectionOf(*this)) return query(*held);
    Lease lease(*this);
    if (!lease.status().ok()) return lease.status().error();
    sqlite::Transaction snapshot(lease.connection(), sqlite::Transaction::Kind::kRead);
    if (!snapshot.status().ok()) return snapshot.status().error();
    return query(lease.connection());
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorrupt, path_ + ": a column of JSON is damaged: " + error.what()};
  }
}

Status Reader::HoldSnapshot(const std::function<void()>& work) {
  Lease lease(*this);
  if (!lease.status().ok()) return lease.status();
  sqlite::Transaction snapshot(lease.connection(), sqlite::Transaction::Kind::kRead);
  if (!snapshot.status().ok()) return snapshot.status();
  const HeldSnapshot held(*this, lease.connection());
  work();
  return {};
}

Status Reader::CheckTables(sqlite::Connection& connection) {
  if (ready_) return {};
  const auto built = BuildPosition(connection);
  if (!built.ok()) return built.error();
  ready_ = !*built;
  if (ready_) return {};
  const auto last = LastSeqOf(connection);
  if (!last.ok()) return last.error();
  return Error{ErrorCode::kUnavailable,
               "the tables are being rebuilt after an update: " + std::to_string((*built)->value) +
                   " of " + std::to_string(*last) +
                   " events of the log are done; try again in a moment"};
}

Status Reader::Ready() {
  if (ready_) return {};
  const auto ready = InSnapshot<bool>([](sqlite::Connection&) -> Result<bool> { return true; });
  return ready.ok() ? Status() : Status(ready.error());
}

Result<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  std::unique_ptr<Reader> reader(new Reader(path));
  if (const auto last = reader->LastSeq(); !last.ok()) return last.error();
  return reader;
}

std::unique_ptr<Reader> Reader::MakeLazy(const std::string& path) {
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
    if (sweeps->front().damaged)
      return Error{ErrorCode::kCorrupt, ToString(id) + ": " + *sweeps->front().damaged};
    return std::move(sweeps->front());
  });
}

Result<Reader::SweepFile> Reader::FileOf(SweepId id) {
  return InSnapshot<SweepFile>([&](sqlite::Connection& connection) -> Result<SweepFile> {
    sqlite::Rows rows = connection.Query(
        "SELECT json_extract(payload, '$.source'), json_extract(payload, '$.path') FROM events"
        " WHERE seq = (SELECT seq FROM sweeps WHERE sweep = ?)",
        id.value);
    if (rows.Next()) return SweepFile{std::string(rows.Text(0)), std::string(rows.Text(1))};
    if (!rows.status().ok()) return rows.status().error();
    return NoSweep(id);
  });
}

Result<SweepSpec> Reader::FirstSpecOf(SweepId id) {
  return InSnapshot<SweepSpec>([&](sqlite::Connection& connection) -> Result<SweepSpec> {
    sqlite::Rows rows = connection.Query(
        "SELECT seq, sweep, trial, time, kind, version, payload FROM events"
        " WHERE seq = (SELECT seq FROM sweeps WHERE sweep = ?)",
        id.value);
    if (!rows.Next()) return rows.status().ok() ? NoSweep(id) : rows.status().error();
    auto event = EventOf(rows);
    if (!event.ok()) return event.error();
    return *std::get<SweepCreated>(event->fact).spec;
  });
}

Result<TrialPage> Reader::Trials(SweepId sweep, const TrialQuery& query) {
  return InSnapshot<TrialPage>([&](sqlite::Connection& connection) -> Result<TrialPage> {
    const sqlite::TimeLimit limit(connection, kTrialsTime);
    auto page = ReadTrialPage(connection, sweep, query);
    if (!limit.exceeded()) return page;
    return Error{ErrorCode::kUnavailable, "the trials took longer than " +
                                              std::to_string(kTrialsTime.count()) +
                                              " s to sort and filter; use a shorter filter"};
  });
}

Result<KeptPage> Reader::Checkpoints(SweepId sweep, TrialNumber first, int trials) {
  return InSnapshot<KeptPage>([&](sqlite::Connection& connection) -> Result<KeptPage> {
    if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
    return ReadKept(connection, sweep, first, trials);
  });
}

Result<KeptRow> Reader::Checkpoint(const CheckpointId& id) {
  return InSnapshot<KeptRow>([&](sqlite::Connection& connection) -> Result<KeptRow> {
    if (const auto trial = ReadTrial(connection, id.trial); !trial.ok()) return trial.error();
    return ReadCheckpoint(connection, id);
  });
}

Result<std::optional<CheckpointId>> Reader::FirstPinned(SweepId sweep) {
  return InSnapshot<std::optional<CheckpointId>>(
      [&](sqlite::Connection& connection) { return ReadPinned(connection, sweep); });
}

Result<TrialRow> Reader::Trial(const TrialId& id) {
  return InSnapshot<TrialRow>(
      [&](sqlite::Connection& connection) { return ReadTrial(connection, id); });
}

Result<TrialDetail> Reader::Detail(const TrialId& id) {
  return InSnapshot<TrialDetail>([&](sqlite::Connection& connection) -> Result<TrialDetail> {
    auto trial = ReadTrial(connection, id);
    if (!trial.ok()) return trial.error();
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    TrialDetail detail{.seen = EventSeq(static_cast<uint64_t>(*last)),
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
    if (Status known = CheckSweep(connection, id.trial.sweep); !known.ok()) return known.error();
    std::vector<AttemptRow> attempts;
    if (Status read = ReadAttempts(connection, id.trial, id.number, 1, attempts); !read.ok())
      return read.error();
    if (attempts.empty() || attempts.front().number != id.number)
      return Error{ErrorCode::kNotFound, "there is no attempt " + ToString(id)};
    return std::move(attempts.front());
  });
}

Result<AttemptEnvironment> Reader::Environment(const TrialId& id, std::optional<uint32_t> attempt) {
  return InSnapshot<AttemptEnvironment>(
      [&](sqlite::Connection& connection) { return ReadEnvironment(connection, id, attempt); });
}

Result<std::optional<Event>> Reader::FindRequest(SweepId sweep, const std::string& request_key) {
  return InSnapshot<std::optional<Event>>(
      [&](sqlite::Connection& connection) -> Result<std::optional<Event>> {
        const auto [from, until] = SameRequests(request_key);
        sqlite::Rows rows = connection.Query(
            "SELECT seq, sweep, trial, " + ShownTimeSql("events") +
                ", kind, version, payload FROM events"
                " WHERE seq = (SELECT seq FROM requests WHERE sweep = ?1 AND key >= ?2 AND key < ?3"
                "  AND (?1 = 0 OR EXISTS (SELECT 1 FROM sweeps WHERE sweep = ?1)) LIMIT 1)",
            sweep.value, from, until);
        if (!rows.Next()) {
          if (!rows.status().ok()) return rows.status().error();
          return std::optional<Event>();
        }
        auto event = EventOf(rows);
        if (!event.ok()) return event.error();
        return std::optional<Event>(std::move(event).value());
      });
}

Result<std::optional<std::string>> Reader::RequestKeyOf(SweepId sweep,
                                                        const std::string& request_key) {
  return InSnapshot<std::optional<std::string>>(
      [&](sqlite::Connection& connection) -> Result<std::optional<std::string>> {
        const auto [from, until] = SameRequests(request_key);
        sqlite::Rows rows = connection.Query(
            "SELECT key FROM requests WHERE sweep = ?1 AND key >= ?2 AND key < ?3"
            " AND (?1 = 0 OR EXISTS (SELECT 1 FROM sweeps WHERE sweep = ?1)) LIMIT 1",
            sweep.value, from, until);
        if (rows.Next()) return std::optional(std::string(rows.Text(0)));
        if (!rows.status().ok()) return rows.status().error();
        return std::optional<std::string>();
      });
}

Result<std::optional<Explanation>> Reader::Explain(const TrialId& id, std::optional<Step> step) {
  return InSnapshot<std::optional<Explanation>>(
      [&](sqlite::Connection& connection) -> Result<std::optional<Explanation>> {
        if (const auto trial = ReadTrial(connection, id); !trial.ok()) return trial.error();
        return ReadExplanation(connection, id, step);
      });
}

Result<std::vector<TrialResult>> Reader::Results(SweepId sweep) {
  return InSnapshot<std::vector<TrialResult>>(
      [&](sqlite::Connection& connection) { return ReadResults(connection, sweep); });
}

Result<std::vector<TrialUse>> Reader::Uses(SweepId sweep) {
  return InSnapshot<std::vector<TrialUse>>(
      [&](sqlite::Connection& connection) { return ReadUses(connection, sweep); });
}

Result<HeldPage> Reader::HeldSlots(Time since, Time until, const std::string& executor,
                                   size_t limit) {
  return InSnapshot<HeldPage>([&](sqlite::Connection& connection) {
    return ReadHeldSlots(connection, since, until, executor, limit);
  });
}

Result<std::vector<JoinRow>> Reader::Joins() { return InSnapshot<std::vector<JoinRow>>(ReadJoins); }

Result<ComparedTrials> Reader::CompareTrials(SweepId sweep, const Objective& metric,
                                             const CommonSteps& steps,
                                             const std::stop_token& stop) {
  return InSnapshot<ComparedTrials>([&](sqlite::Connection& connection) {
    return ReadCompared(connection, sweep, path_, metric, steps, stop);
  });
}

Result<Failures> Reader::GroupFailures(SweepId sweep) {
  return InSnapshot<Failures>([&](sqlite::Connection& connection) -> Result<Failures> {
    if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
    return ReadFailures(connection, sweep);
  });
}

Result<std::vector<Branch>> Reader::Branches(SweepId sweep, EventSeq after, int limit) {
  return InSnapshot<std::vector<Branch>>(
      [&](sqlite::Connection& connection) -> Result<std::vector<Branch>> {
        if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
        return ReadBranches(connection, sweep, after, limit);
      });
}

Result<std::vector<UserAction>> Reader::Activity(SweepId sweep, std::optional<EventSeq> before,
                                                 int limit) {
  return InSnapshot<std::vector<UserAction>>(
      [&](sqlite::Connection& connection) -> Result<std::vector<UserAction>> {
        if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
        return ReadActivity(connection, sweep, before, limit);
      });
}

Result<Curves> Reader::MetricCurves(SweepId sweep, const std::string& metric, TrialNumber first,
                                    const CurveLimits& limits) {
  return InSnapshot<Curves>([&](sqlite::Connection& connection) {
    return ReadCurves(connection, sweep, metric, first, limits);
  });
}

Result<ThinnedPage> Reader::ThinnedCurves(SweepId sweep, const std::string& metric,
                                          const CurveSelection& selection,
                                          const CurveLimits& limits) {
  return InSnapshot<ThinnedPage>([&](sqlite::Connection& connection) {
    return ReadThinned(connection, path_, {sweep, metric, selection, limits});
  });
}

Result<std::vector<LoggedRow>> Reader::Logged(const TrialId& trial, EventSeq after, int limit) {
  return InSnapshot<std::vector<LoggedRow>>(
      [&](sqlite::Connection& connection) { return ReadLogged(connection, trial, after, limit); });
}

Result<EventsPage> Reader::EventsAfter(EventSeq after, std::optional<SweepId> sweep, int limit) {
  return InSnapshot<EventsPage>([&](sqlite::Connection& connection) -> Result<EventsPage> {
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    std::optional<uint64_t> only;
    if (sweep) only = sweep->value;
    const uint64_t to = std::min(static_cast<uint64_t>(*last), after.value + kEventsPerScan);
    sqlite::Rows rows = connection.Query(
        "SELECT seq, sweep, trial, " + ShownTimeSql("events") +
            ", kind, version, payload, actor FROM events"
            " WHERE seq > ?1 AND seq <= ?2 AND (?3 IS NULL OR sweep IS NULL OR sweep = ?3)"
            " ORDER BY seq",
        after.value, to, only);
    auto erased = ErasedEvents::Read(connection);
    if (!erased.ok()) return erased.error();
    EventsPage page;
    EventSeq before = after;
    while (std::ssize(page.events) < limit && rows.Next()) {
      auto event = EventWithActorOf(rows);
      if (!event.ok()) return event.error();
      const Status whole = sweep ? Status() : erased->CheckGap(before, event->seq);
      if (!whole.ok()) return whole.error();
      before = event->seq;
      if (erased->Includes(SweepOf(event->fact), event->seq)) continue;
      page.events.push_back(std::move(event).value());
    }
    if (!rows.status().ok()) return rows.status().error();
    const bool full = std::ssize(page.events) == limit;
    page.seen = full ? page.events.back().seq : EventSeq(std::max(to, after.value));
    page.more = page.seen.value < static_cast<uint64_t>(*last);
    return page;
  });
}

Result<Time> Reader::DisplayTime(EventSeq seq, Time time) {
  return InSnapshot<Time>([&](sqlite::Connection& connection) -> Result<Time> {
    sqlite::Rows rows = connection.Query(
        "SELECT offset_us FROM clock WHERE seq <= ? ORDER BY seq DESC LIMIT 1", seq.value);
    const int64_t offset_us = rows.Next() ? rows.Integer(0) : 0;
    if (!rows.status().ok()) return rows.status().error();
    return Time{time.us + offset_us};
  });
}

Result<StateCounts> Reader::CountStates() {
  return InSnapshot<StateCounts>([](sqlite::Connection& connection) -> Result<StateCounts> {
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    StateCounts counts{.last = EventSeq(static_cast<uint64_t>(*last))};
    for (const auto& [sql, states] :
         {std::pair("SELECT state, count(*) FROM sweeps GROUP BY state", &counts.sweeps),
          std::pair("SELECT state, sum(trials) FROM trial_counts GROUP BY state",
                    &counts.trials)}) {
      sqlite::Rows rows = connection.Query(sql);
      while (rows.Next()) (*states)[std::string(rows.Text(0))] = rows.Integer(1);
      if (!rows.status().ok()) return rows.status().error();
    }
    return counts;
  });
}

Result<std::set<std::string>> Reader::CodeDigests() {
  return InSnapshot<std::set<std::string>>(ReadCodeDigests);
}

Result<EventSeq> Reader::LastSeq() {
  return QueryLog<EventSeq>([](sqlite::Connection& connection) -> Result<EventSeq> {
    const auto last = LastSeqOf(connection);
    if (!last.ok()) return last.error();
    return EventSeq(static_cast<uint64_t>(*last));
  });
}

Status Reader::Events(SweepId sweep, const std::function<bool(const Event&)>& visit,
                      EventSelection selection) {
  std::string only;
  if (selection == EventSelection::kLineages)
    only = " AND (seq IN (SELECT seq FROM clones WHERE sweep = ?1) OR " +
           IsOfKinds({TrialCreated::kRow.info.kind, AttemptAssigned::kRow.info.kind,
                      TrialPromoted::kRow.info.kind}) +
           ")";
  const auto shown = InSnapshot<bool>([&](sqlite::Connection& connection) -> Result<bool> {
    if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
    sqlite::Rows rows = connection.Query(
        "SELECT seq, sweep, trial, time, kind, version, payload FROM events"
        " WHERE seq >= (SELECT seq FROM sweeps WHERE sweep = ?1) AND sweep = ?1" +
            only + " ORDER BY seq",
        sweep.value);
    while (rows.Next()) {
      const auto event = EventOf(rows);
      if (!event.ok()) return event.error();
      if (!visit(*event)) return true;
    }
    if (!rows.status().ok()) return rows.status().error();
    return true;
  });
  return shown.ok() ? Status() : Status(shown.error());
}

}  // namespace attune::server

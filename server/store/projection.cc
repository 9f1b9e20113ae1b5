#include "server/store/projection.h"

#include <cmath>
#include <vector>

#include "server/store/event_log.h"
#include "server/store/format_time.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

constexpr size_t kRebuildBatch = 4096;  // events

constexpr const char* kTables = R"sql(
  DROP TABLE IF EXISTS sweeps;
  DROP TABLE IF EXISTS trials;
  DROP TABLE IF EXISTS attempts;
  DROP TABLE IF EXISTS decisions;
  DROP TABLE IF EXISTS checkpoints;
  DROP TABLE IF EXISTS executors;
  DROP TABLE IF EXISTS report_index;

  CREATE TABLE sweeps (
    sweep      INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    reason     TEXT    NOT NULL DEFAULT '',
    created    TEXT    NOT NULL,
    ended      TEXT,
    metric     TEXT    NOT NULL,
    mode       TEXT    NOT NULL,
    searcher   TEXT    NOT NULL,
    scheduler  TEXT    NOT NULL,
    max_trials INTEGER NOT NULL,
    max_step   INTEGER NOT NULL,
    workers    INTEGER NOT NULL,
    spec       TEXT    NOT NULL,
    seq        INTEGER NOT NULL
  );

  CREATE TABLE trials (
    sweep          INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    config         TEXT    NOT NULL,
    origin         TEXT    NOT NULL,
    reason         TEXT    NOT NULL DEFAULT '',
    created        TEXT    NOT NULL,
    ended          TEXT,
    attempts       INTEGER NOT NULL DEFAULT 0,
    step           INTEGER NOT NULL DEFAULT 0,
    milestone      INTEGER NOT NULL DEFAULT 0,
    seconds        REAL    NOT NULL DEFAULT 0,
    seconds_before REAL    NOT NULL DEFAULT 0,
    metrics        TEXT    NOT NULL DEFAULT '{}',
    best           REAL,
    best_step      INTEGER,
    best_metrics   TEXT,
    checkpoint     TEXT,
    PRIMARY KEY (sweep, number)
  ) WITHOUT ROWID;
  CREATE INDEX trials_by_state ON trials (sweep, state);
  CREATE INDEX trials_by_best ON trials (sweep, best) WHERE best IS NOT NULL;

  CREATE TABLE attempts (
    sweep        INTEGER NOT NULL,
    trial        INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    outcome      TEXT    NOT NULL DEFAULT '',
    failure      TEXT    NOT NULL DEFAULT '',
    failure_kind TEXT    NOT NULL DEFAULT '',
    failure_rank INTEGER,
    executor     TEXT    NOT NULL,
    ranks        TEXT    NOT NULL,
    pids         TEXT    NOT NULL DEFAULT '[]',
    resumed_from INTEGER,
    decided      TEXT    NOT NULL,
    started      TEXT,
    first_step   TEXT,
    ended        TEXT,
    PRIMARY KEY (sweep, trial, number)
  ) WITHOUT ROWID;

  CREATE TABLE decisions (
    seq       INTEGER PRIMARY KEY,
    sweep     INTEGER NOT NULL,
    trial     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    time      TEXT    NOT NULL,
    step      INTEGER NOT NULL,
    verdict   TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    rule      TEXT    NOT NULL,
    rung      INTEGER NOT NULL,
    value     REAL,
    cutoff    REAL,
    rank      INTEGER NOT NULL,
    peers     INTEGER NOT NULL,
    milestone INTEGER NOT NULL,
    donor     INTEGER
  );
  CREATE INDEX decisions_by_trial ON decisions (sweep, trial);

  CREATE TABLE checkpoints (
    sweep   INTEGER NOT NULL,
    trial   INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    path    TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    bytes   INTEGER NOT NULL,
    time    TEXT    NOT NULL,
    PRIMARY KEY (sweep, trial, step, attempt)
  ) WITHOUT ROWID;

  CREATE TABLE executors (
    name         TEXT PRIMARY KEY,
    state        TEXT    NOT NULL,
    reason       TEXT    NOT NULL DEFAULT '',
    address      TEXT    NOT NULL,
    instance     TEXT    NOT NULL,
    incarnation  INTEGER NOT NULL,
    cpus         INTEGER NOT NULL,
    gpus         INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    joined       TEXT    NOT NULL,
    lost         TEXT
  ) WITHOUT ROWID;

  CREATE TABLE report_index (
    sweep INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (sweep, trial, seq)
  ) WITHOUT ROWID;
)sql";

// Rows of the log that are reports, found by sweep and trial: up to the last multiple of
// kReportIndexEvery through the index, after it by looking at each event.
std::string Views() {
  const std::string every = std::to_string(kReportIndexEvery);
  return R"sql(
  DROP VIEW IF EXISTS reports;
  DROP VIEW IF EXISTS report_events;

  CREATE VIEW report_events AS
    SELECT e.seq, i.sweep, i.trial, e.time, e.kind, e.version, e.payload
    FROM report_index AS i CROSS JOIN events AS e ON e.seq = i.seq
  UNION ALL
    SELECT seq, sweep, trial, time, kind, version, payload FROM events
    WHERE kind = 'trial_reported'
      AND seq > (SELECT max(seq) / )sql" +
         every + " * " + every + R"sql( FROM events);

  CREATE VIEW reports AS
    SELECT seq, sweep, trial, time,
           payload ->> iif(version = 1, '$.attempt', '$[0]') AS attempt,
           payload ->> iif(version = 1, '$.step', '$[1]') AS step,
           payload ->> iif(version = 1, '$.seconds', '$[2]') AS seconds,
           payload -> iif(version = 1, '$.metrics', '$[3]') AS metrics
    FROM report_events;
)sql";
}

Json RanksToJson(const std::vector<RankSlot>& ranks) {
  Json json = Json::array();
  for (const RankSlot& slot : ranks) {
    json.push_back({{"rank", json.size()},
                    {"executor", slot.executor},
                    {"local_rank", slot.local_rank},
                    {"cpus", slot.cpus},
                    {"gpus", slot.gpus}});
  }
  return json;
}

// A reason's number that may be absent.
std::optional<double> Present(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}

std::string Sentence(const Failure& failure) {
  if (failure.log_tail.empty()) return failure.message;
  return failure.message + "\n" + failure.log_tail;
}

}  // namespace

void Projection::Apply(sqlite::Transaction& transaction, std::span<const Event> batch) {
  if (!transaction.status().ok()) return;
  for (const Event& event : batch)
    std::visit([&](const auto& fact) { On(transaction, event, fact); }, event.fact);
  progress_.WriteAll(transaction);
  if (!batch.empty()) IndexReports(transaction, batch.front().seq, batch.back().seq);
}

void Projection::Rebuild(sqlite::Transaction& transaction) {
  Forget();
  transaction.Execute(kTables);
  transaction.Execute(Views());
  if (!transaction.status().ok()) return;
  std::vector<Event> batch;
  const auto apply = [&] {
    Apply(transaction, batch);
    batch.clear();
  };
  const Status read = ReadLog(transaction.connection(), EventSeq(0), [&](const Event& event) {
    batch.push_back(event);
    if (batch.size() == kRebuildBatch) apply();
  });
  apply();
  if (!read.ok()) transaction.Fail(read.error());
}

void Projection::IndexReports(sqlite::Transaction& transaction, EventSeq first, EventSeq last) {
  const uint64_t begin = (first.value - 1) / kReportIndexEvery * kReportIndexEvery;
  const uint64_t end = last.value / kReportIndexEvery * kReportIndexEvery;
  if (begin == end) return;
  transaction.Run(
      "INSERT INTO report_index (sweep, trial, seq) SELECT sweep, trial, seq FROM events"
      " WHERE seq > ? AND seq <= ? AND kind = 'trial_reported' ORDER BY sweep, trial, seq",
      begin, end);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const SweepCreated& fact) {
  const SweepSpec& spec = fact.spec;
  transaction.Run(
      "INSERT INTO sweeps (sweep, name, state, created, metric, mode, searcher, scheduler,"
      " max_trials, max_step, workers, spec, seq)"
      " VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      fact.sweep.value, spec.name, FormatTime(event.time), spec.objective.metric,
      spec.objective.mode == Mode::kMax ? "max" : "min", spec.searcher.name, spec.scheduler.name,
      spec.max_trials, spec.max_step.value, spec.gang.workers, Dump(sweepfile::ToJson(spec)),
      event.seq.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event&, const SweepStopping& fact) {
  transaction.Run("UPDATE sweeps SET reason = ? WHERE sweep = ?", fact.reason, fact.sweep.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event, const SweepEnded& fact) {
  transaction.Run("UPDATE sweeps SET state = ?, reason = ?, ended = ? WHERE sweep = ?",
                  Name(fact.state), fact.reason, FormatTime(event.time), fact.sweep.value);
}

void Projection::On(sqlite::Transaction&, const Event&, const SearchExhausted&) {}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const TrialCreated& fact) {
  transaction.Run(
      "INSERT INTO trials (sweep, number, state, config, origin, created)"
      " VALUES (?, ?, 'pending', ?, ?, ?)",
      fact.trial.sweep.value, fact.trial.number.value, Dump(sweepfile::ToJson(fact.config)),
      fact.origin, FormatTime(event.time));
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const AttemptAssigned& fact) {
  const TrialId& trial = fact.attempt.trial;
  progress_.Write(transaction, trial);
  std::optional<int64_t> resumed_from;
  if (fact.resume) resumed_from = fact.resume->step.value;
  transaction.Run(
      "INSERT INTO attempts (sweep, trial, number, epoch, state, executor, ranks, resumed_from,"
      " decided) VALUES (?, ?, ?, ?, 'assigned', ?, ?, ?, ?)",
      trial.sweep.value, trial.number.value, fact.attempt.number, fact.epoch.value,
      fact.ranks.empty() ? std::string() : fact.ranks.front().executor,
      Dump(RanksToJson(fact.ranks)), resumed_from, FormatTime(event.time));
  transaction.Run(
      "UPDATE trials SET state = 'running', reason = '', attempts = ?, milestone = ?,"
      " seconds_before = seconds WHERE sweep = ? AND number = ?",
      fact.attempt.number, fact.milestone.value, trial.sweep.value, trial.number.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const AttemptStarted& fact) {
  transaction.Run(
      "UPDATE attempts SET state = 'running', pids = ?, started = ?"
      " WHERE sweep = ? AND trial = ? AND number = ?",
      Dump(fact.pids), FormatTime(event.time), fact.attempt.trial.sweep.value,
      fact.attempt.trial.number.value, fact.attempt.number);
}

void Projection::On(sqlite::Transaction& transaction, const Event&, const AttemptFirstStep& fact) {
  transaction.Run("UPDATE attempts SET first_step = ? WHERE sweep = ? AND trial = ? AND number = ?",
                  FormatTime(fact.at), fact.attempt.trial.sweep.value,
                  fact.attempt.trial.number.value, fact.attempt.number);
}

void Projection::On(sqlite::Transaction& transaction, const Event&, const TrialReported& fact) {
  progress_.Add(transaction, fact);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const TrialDecided& fact) {
  const TrialId& trial = fact.attempt.trial;
  const Reason& reason = fact.verdict.reason;
  std::optional<uint32_t> donor;
  if (fact.verdict.kind == VerdictKind::kExploit) donor = fact.verdict.donor.value;
  transaction.Run(
      "INSERT INTO decisions (seq, sweep, trial, attempt, time, step, verdict, reason, rule, rung,"
      " value, cutoff, rank, peers, milestone, donor)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      event.seq.value, trial.sweep.value, trial.number.value, fact.attempt.number,
      FormatTime(event.time), fact.step.value, Name(fact.verdict.kind), reason.text, reason.rule,
      reason.rung.value, Present(reason.value), Present(reason.cutoff), reason.rank, reason.peers,
      fact.milestone.value, donor);
  if (fact.verdict.kind == VerdictKind::kPause) {
    transaction.Run("UPDATE trials SET state = 'paused', reason = ? WHERE sweep = ? AND number = ?",
                    reason.text, trial.sweep.value, trial.number.value);
  } else if (fact.milestone.value > 0) {
    transaction.Run("UPDATE trials SET milestone = ? WHERE sweep = ? AND number = ?",
                    fact.milestone.value, trial.sweep.value, trial.number.value);
  }
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const CheckpointSaved& fact) {
  const TrialId& trial = fact.attempt.trial;
  const CheckpointRef& checkpoint = fact.checkpoint;
  transaction.Run(
      "INSERT OR REPLACE INTO checkpoints (sweep, trial, step, attempt, path, digest, bytes, time)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      trial.sweep.value, trial.number.value, checkpoint.step.value, fact.attempt.number,
      checkpoint.path, checkpoint.digest, fact.bytes, FormatTime(event.time));
  transaction.Run("UPDATE trials SET checkpoint = ? WHERE sweep = ? AND number = ?",
                  checkpoint.path, trial.sweep.value, trial.number.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const AttemptEnded& fact) {
  progress_.Write(transaction, fact.attempt.trial);
  progress_.Forget(fact.attempt.trial);
  const bool failed = fact.outcome == Outcome::kFailed;
  std::optional<int> rank;
  if (failed && fact.failure.rank >= 0) rank = fact.failure.rank;
  transaction.Run(
      "UPDATE attempts SET state = 'ended', outcome = ?, failure = ?, failure_kind = ?,"
      " failure_rank = ?, ended = ? WHERE sweep = ? AND trial = ? AND number = ?",
      Name(fact.outcome), failed ? Sentence(fact.failure) : std::string(),
      failed ? Name(fact.failure.kind) : std::string_view(), rank, FormatTime(event.time),
      fact.attempt.trial.sweep.value, fact.attempt.trial.number.value, fact.attempt.number);
}

void Projection::On(sqlite::Transaction& transaction, const Event&, const TrialRequeued& fact) {
  transaction.Run("UPDATE trials SET state = 'pending', reason = ? WHERE sweep = ? AND number = ?",
                  fact.reason, fact.trial.sweep.value, fact.trial.number.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event, const TrialEnded& fact) {
  transaction.Run(
      "UPDATE trials SET state = ?, reason = ?, ended = ? WHERE sweep = ? AND number = ?",
      Name(fact.state), fact.reason, FormatTime(event.time), fact.trial.sweep.value,
      fact.trial.number.value);
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const ExecutorJoined& fact) {
  transaction.Run(
      "INSERT OR REPLACE INTO executors (name, state, address, instance, incarnation, cpus, gpus,"
      " memory_bytes, joined) VALUES (?, 'online', ?, ?, ?, ?, ?, ?, ?)",
      fact.name, fact.address, fact.instance, fact.incarnation.value, fact.resources.cpus,
      fact.resources.gpus, fact.resources.memory_bytes, FormatTime(event.time));
}

void Projection::On(sqlite::Transaction& transaction, const Event& event,
                    const ExecutorLost& fact) {
  transaction.Run("UPDATE executors SET state = 'lost', reason = ?, lost = ? WHERE name = ?",
                  fact.reason, FormatTime(event.time), fact.name);
}

}  // namespace attune::server

#include "server/store/tables/tables.h"

#include <string_view>

#include "core/base/content_hash.h"
#include "core/log/event.h"

namespace attune::server {

namespace {

// Replaces every `place` by the text, which must not contain `place`.
void ReplaceAll(std::string& sql, std::string_view place, std::string_view text) {
  for (size_t at = sql.find(place); at != std::string::npos; at = sql.find(place, at))
    sql.replace(at, place.size(), text);
}

// A view of the log's events of one kind, found by sweep and trial. Up to the last multiple of
// kCurveIndexEvery it uses the index NAME_index; after that it scans the events.
std::string EventsOf(std::string_view name, std::string_view kind) {
  std::string sql = R"sql(
  DROP VIEW IF EXISTS {name}_events;

  CREATE VIEW {name}_events AS
    SELECT i.seq, i.sweep, i.trial, {e.time} AS time, e.kind, e.version, e.payload
    FROM {name}_index AS i CROSS JOIN events AS e ON e.seq = i.seq
  UNION ALL
    SELECT seq, sweep, trial, {events.time} AS time, kind, version, payload FROM events
    WHERE kind = '{kind}' AND sweep IN (SELECT sweep FROM sweeps)
      AND seq > (SELECT max(seq) / {every} * {every} FROM events);
)sql";
  ReplaceAll(sql, "{name}", name);
  ReplaceAll(sql, "{e.time}", ShownTimeSql("e"));
  ReplaceAll(sql, "{events.time}", ShownTimeSql("events"));
  ReplaceAll(sql, "{kind}", kind);
  ReplaceAll(sql, "{every}", std::to_string(kCurveIndexEvery));
  return sql;
}

}  // namespace

std::string ShownTimeSql(const std::string& events) {
  return events + ".time + ifnull((SELECT offset_us FROM clock WHERE clock.seq <= " + events +
         ".seq ORDER BY clock.seq DESC LIMIT 1), 0)";
}

std::string TablesSql(const TableNames& names) {
  std::string sql = R"sql(
  DROP TABLE IF EXISTS main.@sweeps;
  DROP TABLE IF EXISTS main.@trials;
  DROP TABLE IF EXISTS main.@attempts;
  DROP TABLE IF EXISTS main.@decisions;
  DROP TABLE IF EXISTS main.@policies;
  DROP TABLE IF EXISTS main.@clones;
  DROP TABLE IF EXISTS main.@checkpoints;
  DROP TABLE IF EXISTS main.@executors;
  DROP TABLE IF EXISTS main.@front;
  DROP TABLE IF EXISTS main.@report_index;
  DROP TABLE IF EXISTS main.@logged_index;
  DROP TABLE IF EXISTS main.@logged_metrics;
  DROP TABLE IF EXISTS main.@behind;
  DROP TABLE IF EXISTS main.@unshown;
  DROP TABLE IF EXISTS main.@trial_counts;
  DROP TABLE IF EXISTS main.@requests;
  DROP TABLE IF EXISTS main.@clock;
  DROP TABLE IF EXISTS main.@activity;
  DROP TABLE IF EXISTS main.@environments;

  CREATE TABLE @environments (
    sweep    INTEGER NOT NULL,
    executor TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    record   TEXT    NOT NULL,
    PRIMARY KEY (sweep, executor, seq)
  ) WITHOUT ROWID;

  CREATE TABLE @clock (
    seq       INTEGER PRIMARY KEY,
    offset_us INTEGER NOT NULL,
    reason    TEXT    NOT NULL
  );

  CREATE TABLE @sweeps (
    sweep      INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    reason     TEXT    NOT NULL DEFAULT '',
    created    TEXT    NOT NULL,
    ended      TEXT,
    reserved   TEXT,
    metric     TEXT    NOT NULL,
    mode       TEXT    NOT NULL,
    objectives TEXT    NOT NULL,
    searcher   TEXT    NOT NULL,
    scheduler  TEXT    NOT NULL,
    max_trials INTEGER NOT NULL,
    max_step   INTEGER NOT NULL,
    workers    INTEGER NOT NULL,
    spec       TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    edited     TEXT,
    edited_by  TEXT,
    changes    TEXT,
    warm_start TEXT,
    note       TEXT    NOT NULL DEFAULT '',
    tags       TEXT    NOT NULL DEFAULT '[]'
  );

  CREATE TABLE @trials (
    sweep          INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    config         TEXT    NOT NULL,
    origin         TEXT    NOT NULL,
    rationale      TEXT,
    reason         TEXT    NOT NULL DEFAULT '',
    created        TEXT    NOT NULL,
    ended          TEXT,
    not_before     TEXT,
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
    note           TEXT    NOT NULL DEFAULT '',
    tags           TEXT    NOT NULL DEFAULT '[]',
    patch          TEXT,
    code           TEXT,
    PRIMARY KEY (sweep, number)
  ) WITHOUT ROWID;
  CREATE INDEX trials_by_code$ ON @trials (code) WHERE code IS NOT NULL;
  CREATE INDEX trials_by_state$ ON @trials (sweep, state);
  CREATE INDEX trials_by_best$ ON @trials (sweep, best) WHERE best IS NOT NULL;

  CREATE TABLE @trial_counts (
    sweep  INTEGER NOT NULL,
    state  TEXT    NOT NULL,
    trials INTEGER NOT NULL,
    PRIMARY KEY (sweep, state)
  ) WITHOUT ROWID;
  CREATE TRIGGER trials_come$ AFTER INSERT ON @trials BEGIN
    INSERT INTO @trial_counts VALUES (new.sweep, new.state, 1)
      ON CONFLICT DO UPDATE SET trials = trials + 1;
  END;
  CREATE TRIGGER trials_change$ AFTER UPDATE OF state ON @trials WHEN old.state <> new.state BEGIN
    UPDATE @trial_counts SET trials = trials - 1 WHERE sweep = old.sweep AND state = old.state;
    INSERT INTO @trial_counts VALUES (new.sweep, new.state, 1)
      ON CONFLICT DO UPDATE SET trials = trials + 1;
  END;

  CREATE TABLE @requests (
    sweep INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (sweep, key)
  ) WITHOUT ROWID;

  CREATE TABLE @attempts (
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
    workers      INTEGER NOT NULL,
    gpus         REAL    NOT NULL,
    pids         TEXT    NOT NULL DEFAULT '[]',
    resumed_from INTEGER,
    step         INTEGER,
    seconds      REAL,
    decided      TEXT    NOT NULL,
    started      TEXT,
    first_step   TEXT,
    ended        TEXT,
    PRIMARY KEY (sweep, trial, number)
  ) WITHOUT ROWID;
  CREATE INDEX attempts_by_end$ ON @attempts (ended);

  CREATE TABLE @policies (
    sweep     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    scheduler TEXT    NOT NULL,
    PRIMARY KEY (sweep, seq)
  ) WITHOUT ROWID;

  CREATE TABLE @decisions (
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
    policy    INTEGER NOT NULL,
    milestone INTEGER NOT NULL,
    donor     INTEGER,
    config    TEXT
  );
  CREATE INDEX decisions_by_trial$ ON @decisions (sweep, trial);
  CREATE INDEX promotions$ ON @decisions (sweep, seq)
    WHERE verdict = 'promote' AND donor IS NULL;

  CREATE TABLE @clones (
    seq   INTEGER PRIMARY KEY,
    sweep INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    donor INTEGER NOT NULL,
    step  INTEGER NOT NULL
  );
  CREATE INDEX clones_by_sweep$ ON @clones (sweep);

  CREATE TABLE @checkpoints (
    sweep   INTEGER NOT NULL,
    trial   INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    path    TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    bytes   INTEGER NOT NULL,
    time    TEXT    NOT NULL,
    pinned  INTEGER NOT NULL DEFAULT 0,
    dropped TEXT,
    removed TEXT,
    reason  TEXT    NOT NULL DEFAULT '',
    stored  TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (sweep, trial, step, attempt)
  ) WITHOUT ROWID;

  CREATE TABLE @executors (
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
    lost         TEXT,
    labels       TEXT    NOT NULL DEFAULT '{}',
    drained      TEXT,
    drain_reason TEXT,
    health_problem    TEXT,
    quarantine_until  TEXT,
    quarantine_reason TEXT
  ) WITHOUT ROWID;

  CREATE TABLE @front (
    seq        INTEGER PRIMARY KEY,
    sweep      INTEGER NOT NULL,
    trial      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    objectives TEXT    NOT NULL,
    metrics    TEXT    NOT NULL
  );
  CREATE INDEX front_by_sweep$ ON @front (sweep, trial);

  CREATE TABLE @report_index (
    sweep INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (sweep, trial, seq)
  ) WITHOUT ROWID;

  CREATE TABLE @logged_index (
    sweep INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (sweep, trial, seq)
  ) WITHOUT ROWID;

  CREATE TABLE @logged_metrics (
    sweep INTEGER NOT NULL,
    name  TEXT    NOT NULL,
    PRIMARY KEY (sweep, name)
  ) WITHOUT ROWID;

  CREATE TABLE @activity (
    seq    INTEGER PRIMARY KEY,
    sweep  INTEGER NOT NULL,
    trial  INTEGER,
    time   TEXT    NOT NULL,
    actor  TEXT    NOT NULL,
    action TEXT    NOT NULL,
    detail TEXT    NOT NULL
  );
  CREATE INDEX activity_by_sweep$ ON @activity (sweep, seq);

  CREATE TABLE @behind (
    one INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
  );

  CREATE TABLE @unshown (
    seq    INTEGER PRIMARY KEY,
    reason TEXT    NOT NULL,
    retry  INTEGER NOT NULL
  );
)sql";
  ReplaceAll(sql, "@", names.prefix);
  ReplaceAll(sql, "$", names.suffix);
  return sql;
}

std::string ViewsSql() {
  return "DROP VIEW IF EXISTS reports; DROP VIEW IF EXISTS logged;" +
         EventsOf("report", TrialReported::kRow.info.kind) +
         EventsOf("logged", MetricsLogged::kRow.info.kind) +
         R"sql(
  CREATE VIEW logged AS
    SELECT seq, sweep, trial, time, payload ->> '$[0]' AS attempt, payload ->> '$[2]' AS step,
           payload -> '$[3]' AS metrics
    FROM logged_events;

  CREATE VIEW reports AS
    SELECT seq, sweep, trial, time,
           payload ->> '$[0]' AS attempt, payload ->> '$[1]' AS step, payload ->> '$[2]' AS seconds,
           payload -> '$[3]' AS metrics
    FROM report_events;
)sql";
}

int64_t TablesForm() {
  return static_cast<int64_t>(
      ContentHash(TablesSql() + ViewsSql() + std::to_string(kTablesRevision)));
}

}  // namespace attune::server

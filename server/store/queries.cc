#include "server/store/queries.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "json/parse.h"
#include "server/store/columns.h"
#include "server/store/event_log.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/row_json.h"
#include "server/store/tables/spec_column.h"

namespace attune::server {
namespace {

Error NoTrial(const TrialId& id) {
  return {ErrorCode::kNotFound, "there is no trial " + ToString(id) + "; `attune trial list " +
                                    ToString(id.sweep) + "` lists the existing ones"};
}

std::optional<double> OptionalReal(const sqlite::Rows& rows, int column) {
  if (rows.Null(column)) return std::nullopt;
  return rows.Real(column);
}

Json ParseColumn(const sqlite::Rows& rows, int column) {
  return ParseJsonOrThrow<Json>(rows.Text(column));
}

Config ConfigColumn(const sqlite::Rows& rows, int column) {
  return ValueOrThrow(sweepfile::ConfigFromJson(ParseColumn(rows, column)));
}

Metrics MetricsColumn(const sqlite::Rows& rows, int column) {
  return ValueOrThrow(sweepfile::MetricsFromJson(ParseColumn(rows, column)));
}

Status ReadCounts(sqlite::Connection& connection, SweepRow& sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT state, trials FROM trial_counts WHERE sweep = ? AND trials > 0", sweep.id.value);
  while (rows.Next()) sweep.trials.emplace(rows.Text(0), rows.Integer(1));
  return rows.status();
}

Status ReadLoggedNames(sqlite::Connection& connection, SweepRow& sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT name FROM logged_metrics WHERE sweep = ? ORDER BY name", sweep.id.value);
  while (rows.Next()) sweep.logged.emplace_back(rows.Text(0));
  return rows.status();
}

// Reads the checkpoint for a best report: that of its step and attempt, else of its step, else the
// trial's newest.
Status ReadCheckpointOf(sqlite::Connection& connection, SweepId sweep, int64_t attempt,
                        BestTrial& best) {
  sqlite::Rows rows = connection.Query(
      "SELECT path, step FROM checkpoints WHERE sweep = ?1 AND trial = ?2 AND dropped IS NULL"
      " ORDER BY step = ?3 AND attempt = ?4 DESC, step = ?3 DESC, attempt DESC, step DESC LIMIT 1",
      sweep.value, best.trial.value, best.step.value, attempt);
  if (!rows.Next()) return rows.status();
  best.checkpoint = rows.Text(0);
  best.checkpoint_step = rows.Integer(1);
  return {};
}

Status ReadFront(sqlite::Connection& connection, SweepRow& sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT f.trial, f.step, f.objectives, t.config, f.metrics, f.attempt"
      " FROM front AS f JOIN trials AS t ON t.sweep = f.sweep AND t.number = f.trial"
      " WHERE f.sweep = ? ORDER BY f.seq",
      sweep.id.value);
  while (rows.Next()) {
    BestTrial best{.trial = TrialNumberAt(rows, 0), .step = Step(rows.Integer(1))};
    // A damaged row is left out here. The list of trials reports the damage.
    const auto damage = FindDamage([&] {
      best.values = ParseColumn(rows, 2).get<std::vector<double>>();
      best.config = ConfigColumn(rows, 3);
      best.metrics = MetricsColumn(rows, 4);
    });
    if (damage) continue;
    sweep.front.push_back(std::move(best));
    const Status read = ReadCheckpointOf(connection, sweep.id, rows.Integer(5), sweep.front.back());
    if (!read.ok()) return read;
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
  SweepRow row{.id = SweepId(static_cast<uint64_t>(rows.Integer(0))),
               .state = std::string(rows.Text(1)),
               .reason = std::string(rows.Text(2)),
               .created = std::string(rows.Text(3)),
               .ended = rows.OptionalText(4),
               .reserved = rows.OptionalText(6),
               .owner = std::string(rows.Text(7)),
               .note = std::string(rows.Text(12))};
  row.damaged = FindDamage([&] {
    row.spec = SpecOfColumn(rows.Text(5));
    row.edit = EditOfRow(rows);
    row.warm_start = ParseColumn(rows, 11).get<std::vector<std::string>>();
    row.tags = ParseColumn(rows, 13).get<std::vector<std::string>>();
  });
  if (row.spec.objectives.empty()) row.spec.objectives.emplace_back();  // readers need one
  return row;
}

std::optional<Rationale> RationaleColumn(const sqlite::Rows& rows, int column) {
  if (rows.Null(column)) return std::nullopt;
  return RationaleFromJson(ParseColumn(rows, column));
}

TrialRow TrialOfRow(const sqlite::Rows& rows) {
  TrialRow row{.id = {SweepId(static_cast<uint64_t>(rows.Integer(0))), TrialNumberAt(rows, 1)},
               .state = std::string(rows.Text(2)),
               .reason = std::string(rows.Text(3)),
               .origin = std::string(rows.Text(15)),
               .created = std::string(rows.Text(5)),
               .ended = rows.OptionalText(6),
               .not_before = rows.OptionalText(14),
               .attempts = static_cast<uint32_t>(rows.Integer(7)),
               .step = Step(rows.Integer(8)),
               .milestone = Step(rows.Integer(9)),
               .seconds = Seconds(rows.Real(10)),
               .best = OptionalReal(rows, 12),
               .checkpoint = rows.OptionalText(13),
               .note = std::string(rows.Text(17))};
  if (!rows.Null(19))
    row.patch = {.sha256 = std::string(rows.Text(19)), .code = std::string(rows.Text(20))};
  row.damaged = FindDamage([&] {
    row.config = ConfigColumn(rows, 4);
    row.rationale = RationaleColumn(rows, 16);
    row.metrics = MetricsColumn(rows, 11);
    row.tags = ParseColumn(rows, 18).get<std::vector<std::string>>();
  });
  return row;
}

AttemptRow AttemptOfRow(const sqlite::Rows& rows) {
  AttemptRow attempt{.number = static_cast<uint32_t>(rows.Integer(0)),
                     .epoch = static_cast<uint64_t>(rows.Integer(1)),
                     .state = std::string(rows.Text(2)),
                     .outcome = std::string(rows.Text(3)),
                     .failure = std::string(rows.Text(4)),
                     .executor = std::string(rows.Text(5)),
                     .ranks = RanksFromJson(ParseColumn(rows, 6)),
                     .pids = ParseColumn(rows, 7).get<std::vector<int64_t>>(),
                     .decided = std::string(rows.Text(9)),
                     .started = rows.OptionalText(10),
                     .first_step = rows.OptionalText(11),
                     .ended = rows.OptionalText(12)};
  if (!rows.Null(8)) attempt.resumed_from = rows.Integer(8);
  return attempt;
}

CheckpointRow CheckpointOfRow(const sqlite::Rows& rows) {
  return {.step = Step(rows.Integer(0)),
          .attempt = static_cast<uint32_t>(rows.Integer(1)),
          .path = std::string(rows.Text(2)),
          .digest = std::string(rows.Text(3)),
          .bytes = rows.Integer(4),
          .time = std::string(rows.Text(5)),
          .pinned = rows.Integer(6) != 0,
          .dropped = rows.OptionalText(7),
          .removed = rows.OptionalText(8),
          .reason = std::string(rows.Text(9)),
          .stored = std::string(rows.Text(10))};
}

constexpr std::string_view kKept =
    "SELECT c.step, c.attempt, path, digest, bytes, c.time, pinned, dropped, removed, c.reason,"
    " c.stored, c.trial, a.executor, CASE WHEN t.best_step = c.step THEN t.best END"
    " FROM checkpoints AS c"
    " JOIN trials AS t ON t.sweep = c.sweep AND t.number = c.trial"
    " LEFT JOIN attempts AS a"
    "   ON a.sweep = c.sweep AND a.trial = c.trial AND a.number = c.attempt";

KeptRow KeptOfRow(const sqlite::Rows& rows) {
  return {.trial = TrialNumberAt(rows, 11),
          .checkpoint = CheckpointOfRow(rows),
          .executor = std::string(rows.Text(12)),
          .best = OptionalReal(rows, 13)};
}

DecisionRow DecisionOfRow(const sqlite::Rows& rows) {
  return {.attempt = static_cast<uint32_t>(rows.Integer(10)),
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
          .policy = static_cast<uint64_t>(rows.Integer(12)),
          .milestone = Step(rows.Integer(11))};
}

// Whether `a` ranks above `b`. Values that count as the worst are nullopt.
bool RanksAbove(const Objective& objective, const std::optional<double>& a,
                const std::optional<double>& b) {
  if (!a || !b) return a.has_value() && !b.has_value();
  return objective.Better(*a, *b);
}

}  // namespace

Error Cancelled() { return {ErrorCode::kUnavailable, "the client has cancelled the request"}; }

Error NoSweep(SweepId id) { return {ErrorCode::kNotFound, "there is no sweep " + ToString(id)}; }

Result<int64_t> LastSeqOf(sqlite::Connection& connection) {
  return connection.Number("SELECT max(seq) FROM events");
}

Result<std::vector<SweepRow>> ReadSweeps(sqlite::Connection& connection, SweepId first,
                                         SweepId last, int limit) {
  std::vector<SweepRow> sweeps;
  {
    sqlite::Rows rows = connection.Query(
        "SELECT sweep, state, reason, created, ended, spec, reserved, owner, edited, edited_by,"
        " changes, warm_start, note, tags FROM sweeps"
        " WHERE sweep BETWEEN ? AND ? ORDER BY sweep DESC LIMIT ?",
        first.value, last.value, limit);
    while (rows.Next()) sweeps.push_back(SweepOfRow(rows));
    if (!rows.status().ok()) return rows.status().error();
  }
  for (SweepRow& sweep : sweeps) {
    if (Status read = ReadCounts(connection, sweep); !read.ok()) return read.error();
    if (Status read = ReadFront(connection, sweep); !read.ok()) return read.error();
    if (Status read = ReadLoggedNames(connection, sweep); !read.ok()) return read.error();
  }
  return sweeps;
}

Status CheckSweep(sqlite::Connection& connection, SweepId id) {
  sqlite::Rows rows = connection.Query("SELECT 1 FROM sweeps WHERE sweep = ?", id.value);
  if (!rows.Next() && rows.status().ok()) return NoSweep(id);
  return rows.status();
}

Result<std::vector<TrialRow>> ReadTrials(sqlite::Connection& connection, SweepId sweep,
                                         TrialNumber first, int limit) {
  sqlite::Rows rows = connection.Query(
      "SELECT sweep, number, state, reason, config, created, ended, attempts, step, milestone,"
      " seconds, metrics, best, checkpoint, not_before, origin, rationale, note, tags, patch,"
      " code FROM trials"
      " WHERE sweep = ? AND number >= ? ORDER BY number LIMIT ?",
      sweep.value, first.value, limit);
  std::vector<TrialRow> trials;
  while (rows.Next()) trials.push_back(TrialOfRow(rows));
  if (!rows.status().ok()) return rows.status().error();
  return trials;
}

// Rows of a deleted sweep may still be there.
Result<TrialRow> ReadTrial(sqlite::Connection& connection, const TrialId& id) {
  if (Status known = CheckSweep(connection, id.sweep); !known.ok()) return known.error();
  auto trials = ReadTrials(connection, id.sweep, id.number, 1);
  if (!trials.ok()) return trials.error();
  if (trials->empty() || trials->front().id != id) return NoTrial(id);
  if (trials->front().damaged)
    return Error{ErrorCode::kCorrupt, ToString(id) + ": " + *trials->front().damaged};
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
      " milestone, policy FROM decisions WHERE sweep = ? AND trial = ? ORDER BY seq",
      id.sweep.value, id.number.value);
  while (rows.Next()) decisions.push_back(DecisionOfRow(rows));
  return rows.status();
}

Result<std::optional<Explanation>> ReadExplanation(sqlite::Connection& connection,
                                                   const TrialId& id, std::optional<Step> step) {
  std::optional<int64_t> only;
  if (step) only = step->value;
  Explanation explanation;
  uint64_t seq = 0;
  {
    sqlite::Rows rows = connection.Query(
        "SELECT time, step, verdict, reason, rule, rung, value, cutoff, rank, peers, attempt,"
        " milestone, policy, seq, (SELECT scheduler FROM policies WHERE sweep = ?1 AND seq = "
        "policy), policy < (SELECT max(seq) FROM policies WHERE sweep = ?1)"
        " FROM decisions WHERE sweep = ?1 AND trial = ?2"
        " AND (?3 IS NULL OR step = ?3 AND verdict <> 'promote')"
        " ORDER BY seq DESC LIMIT 1",
        id.sweep.value, id.number.value, only);
    if (!rows.Next()) {
      if (!rows.status().ok()) return rows.status().error();
      return std::optional<Explanation>();
    }
    explanation.decision = DecisionOfRow(rows);
    seq = static_cast<uint64_t>(rows.Integer(13));
    explanation.policy = rows.Text(14);
    explanation.policy_changed = rows.Integer(15) != 0;
  }
  if (explanation.decision.rung == Step(0)) return std::optional(std::move(explanation));
  auto sweeps = ReadSweeps(connection, id.sweep, id.sweep, 1);
  if (!sweeps.ok()) return sweeps.error();
  // A trial's value at a rung is that of its first judgement there.
  sqlite::Rows rows = connection.Query(
      "SELECT trial, value, verdict, min(seq) FROM decisions"
      " WHERE sweep = ? AND rule = ? AND rung = ? AND seq <= ? GROUP BY trial ORDER BY 4",
      id.sweep.value, explanation.decision.rule, explanation.decision.rung.value, seq);
  while (rows.Next()) {
    explanation.rung.push_back({.trial = TrialNumberAt(rows, 0),
                                .value = OptionalReal(rows, 1),
                                .verdict = std::string(rows.Text(2))});
  }
  if (!rows.status().ok()) return rows.status().error();
  const Objective& objective = sweeps->front().spec.objective();
  std::ranges::stable_sort(explanation.rung, [&](const auto& a, const auto& b) {
    return RanksAbove(objective, a.value, b.value);
  });
  return std::optional(std::move(explanation));
}

Status ReadCheckpoints(sqlite::Connection& connection, const TrialId& id,
                       std::vector<CheckpointRow>& checkpoints) {
  sqlite::Rows rows = connection.Query(
      "SELECT step, attempt, path, digest, bytes, time, pinned, dropped, removed, reason, stored"
      " FROM checkpoints"
      " WHERE sweep = ? AND trial = ? ORDER BY step, attempt",
      id.sweep.value, id.number.value);
  while (rows.Next()) checkpoints.push_back(CheckpointOfRow(rows));
  return rows.status();
}

Result<KeptRow> ReadCheckpoint(sqlite::Connection& connection, const CheckpointId& id) {
  sqlite::Rows rows = connection.Query(
      std::string(kKept) + " WHERE c.sweep = ? AND c.trial = ? AND c.attempt = ? AND c.step = ?",
      id.trial.sweep.value, id.trial.number.value, id.attempt, id.step.value);
  if (rows.Next()) return KeptOfRow(rows);
  if (!rows.status().ok()) return rows.status().error();
  return Error{ErrorCode::kNotFound, "there is no checkpoint " + ToString(id) +
                                         "; `attune checkpoint list " + ToString(id.trial.sweep) +
                                         "` lists the existing ones"};
}

Result<std::optional<CheckpointId>> ReadPinned(sqlite::Connection& connection, SweepId sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT trial, attempt, step FROM checkpoints"
      " WHERE sweep = ? AND pinned AND dropped IS NULL ORDER BY trial, step, attempt LIMIT 1",
      sweep.value);
  std::optional<CheckpointId> pinned;
  if (rows.Next())
    pinned = CheckpointId{{sweep, TrialNumberAt(rows, 0)},
                          static_cast<uint32_t>(rows.Integer(1)),
                          Step(rows.Integer(2))};
  if (!rows.status().ok()) return rows.status().error();
  return pinned;
}

Result<KeptPage> ReadKept(sqlite::Connection& connection, SweepId sweep, TrialNumber first,
                          int trials) {
  KeptPage page;
  const int64_t end = int64_t{first.value} + trials;
  {
    sqlite::Rows rows = connection.Query(
        std::string(kKept) +
            " WHERE c.sweep = ? AND c.trial >= ? AND c.trial < ? AND c.dropped IS NULL"
            " ORDER BY c.trial, c.step, c.attempt",
        sweep.value, first.value, end);
    while (rows.Next()) page.checkpoints.push_back(KeptOfRow(rows));
    if (!rows.status().ok()) return rows.status().error();
  }
  sqlite::Rows rows = connection.Query(
      "SELECT 1 FROM trials WHERE sweep = ? AND number >= ? LIMIT 1", sweep.value, end);
  page.more = rows.Next();
  if (!rows.status().ok()) return rows.status().error();
  return page;
}

Result<std::vector<Branch>> ReadBranches(sqlite::Connection& connection, SweepId sweep,
                                         EventSeq after, int limit) {
  sqlite::Rows rows = connection.Query(
      "SELECT seq, trial, donor, step FROM clones WHERE sweep = ?1 AND seq > ?2"
      " UNION ALL SELECT seq, trial, NULL, step FROM decisions"
      " WHERE sweep = ?1 AND seq > ?2 AND verdict = 'promote' AND donor IS NULL"
      " ORDER BY seq LIMIT ?3",
      sweep.value, after.value, limit);
  std::vector<Branch> branches;
  while (rows.Next()) {
    Branch branch{.seq = EventSeq(static_cast<uint64_t>(rows.Integer(0))),
                  .trial = TrialNumberAt(rows, 1),
                  .donor = std::nullopt,
                  .step = Step(rows.Integer(3))};
    if (!rows.Null(2)) branch.donor = TrialNumberAt(rows, 2);
    branches.push_back(branch);
  }
  if (!rows.status().ok()) return rows.status().error();
  return branches;
}

Result<std::vector<UserAction>> ReadActivity(sqlite::Connection& connection, SweepId sweep,
                                             std::optional<EventSeq> before, int limit) {
  std::optional<uint64_t> bound;
  if (before) bound = before->value;
  sqlite::Rows rows = connection.Query(
      "SELECT seq, time, actor, action, trial, detail FROM activity"
      " WHERE sweep = ?1 AND (?2 IS NULL OR seq < ?2) ORDER BY seq DESC LIMIT ?3",
      sweep.value, bound, limit);
  std::vector<UserAction> actions;
  while (rows.Next()) {
    UserAction action{.seq = EventSeq(static_cast<uint64_t>(rows.Integer(0))),
                      .time = std::string(rows.Text(1)),
                      .actor = std::string(rows.Text(2)),
                      .name = std::string(rows.Text(3)),
                      .trial = std::nullopt,
                      .detail = std::string(rows.Text(5))};
    if (!rows.Null(4)) action.trial = TrialNumberAt(rows, 4);
    actions.push_back(std::move(action));
  }
  if (!rows.status().ok()) return rows.status().error();
  return actions;
}

Result<std::vector<TrialResult>> ReadResults(sqlite::Connection& connection, SweepId sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT config, best_metrics, number, state, step FROM trials WHERE sweep = ?"
      " AND (state IN ('completed', 'failed')"
      "      OR state IN ('stopped', 'paused') AND best IS NOT NULL)"
      " ORDER BY number",
      sweep.value);
  std::vector<TrialResult> results;
  while (rows.Next()) {
    results.push_back({.config = ConfigColumn(rows, 0),
                       .metrics = rows.Null(1) ? Metrics() : MetricsColumn(rows, 1),
                       .trial = TrialNumberAt(rows, 2),
                       .complete = rows.Text(3) == "completed",
                       .failed = rows.Text(3) == "failed",
                       .step = Step(rows.Integer(4))});
  }
  if (!rows.status().ok()) return rows.status().error();
  return results;
}

Result<std::vector<TrialToCompare>> ReadTrialsToCompare(sqlite::Connection& connection,
                                                        SweepId sweep) {
  sqlite::Rows rows = connection.Query(
      "SELECT number, config, state, step FROM trials WHERE sweep = ?"
      " AND (step > 0 OR state IN ('completed', 'stopped', 'failed')) ORDER BY number",
      sweep.value);
  std::vector<TrialToCompare> trials;
  while (rows.Next()) {
    const std::string_view state = rows.Text(2);
    const bool ended_early = state == "stopped" || state == "failed";
    trials.push_back({.result = {.config = ConfigColumn(rows, 1),
                                 .trial = TrialNumberAt(rows, 0),
                                 .complete = state == "completed",
                                 .failed = state == "failed",
                                 .step = Step(rows.Integer(3))},
                      .is_over = ended_early || state == "completed" || state == "paused",
                      .counts_as_worst = ended_early});
  }
  if (!rows.status().ok()) return rows.status().error();
  return trials;
}

}  // namespace attune::server

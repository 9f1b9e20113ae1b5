#include "server/store/tables/projection.h"

#include <cmath>
#include <vector>

#include "base/result.h"
#include "json/parse.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/row_json.h"
#include "server/store/tables/activity.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

// The rationale of a configuration that the scheduler chose.
std::string RationaleOf(const Reason& reason, const std::optional<CheckpointId>& donor) {
  Rationale rationale{.rule = reason.rule, .text = reason.text};
  if (donor) rationale.from.push_back(donor->trial.number);
  return Dump(RationaleToJson(rationale));
}

// A number of a reason; NaN means that it has none.
std::optional<double> NulloptIfNan(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}

// a value of `verdict` in addition to the verdicts on reports
constexpr std::string_view kPromote = "promote";

// A row of `decisions`: the trial, the verdict, and how the trial continues.
struct DecisionEntry {
  TrialId trial;
  std::optional<uint32_t> attempt = {};  // nullopt here and in `step`: the trial's current value
  std::optional<int64_t> step = {};
  std::string_view verdict;
  Step milestone{0};
  std::optional<uint32_t> donor = {};
  std::optional<std::string> config = {};
};

void AddDecision(sqlite::Transaction& transaction, const Event& event, const DecisionEntry& decided,
                 const Reason& reason) {
  transaction.Run(
      "INSERT INTO @decisions (seq, sweep, trial, attempt, time, step, verdict, reason, rule, rung,"
      " value, cutoff, rank, peers, milestone, donor, config, policy)"
      " SELECT ?1, ?2, ?3, ifnull(?4, attempts), ?5, ifnull(?6, step), ?7, ?8, ?9, ?10, ?11, ?12,"
      " ?13, ?14, ?15, ?16, ?17, (SELECT max(seq) FROM @policies WHERE sweep = ?2)"
      " FROM @trials WHERE sweep = ?2 AND number = ?3",
      event.seq.value, decided.trial.sweep.value, decided.trial.number.value, decided.attempt,
      FormatTime(event.time), decided.step, decided.verdict, reason.text, reason.rule,
      reason.rung.value, NulloptIfNan(reason.value), NulloptIfNan(reason.cutoff), reason.rank,
      reason.peers, decided.milestone.value, decided.donor, decided.config);
}

void AddClone(sqlite::Transaction& transaction, EventSeq seq, const TrialId& trial,
              TrialNumber donor, const KeptCheckpoint& cloned) {
  transaction.Run("INSERT INTO @clones (seq, sweep, trial, donor, step) VALUES (?, ?, ?, ?, ?)",
                  seq.value, trial.sweep.value, trial.number.value, donor.value,
                  cloned.ref.step.value);
}

std::string ObjectivesToJson(const SweepSpec& spec) {
  Json json = Json::array();
  for (const Objective& objective : spec.objectives)
    json.push_back(
        {{"name", objective.metric}, {"mode", objective.mode == Mode::kMax ? "max" : "min"}});
  return Dump(json);
}

// Records the scheduler that decides from this event on, if it has changed.
void SetPolicy(sqlite::Transaction& transaction, EventSeq seq, SweepId sweep, const Json& spec) {
  const std::string scheduler = Dump(spec.at("scheduler"));
  transaction.Run(
      "INSERT INTO @policies (sweep, seq, scheduler) SELECT ?1, ?2, ?3 WHERE ?3 IS NOT"
      " (SELECT scheduler FROM @policies WHERE sweep = ?1 ORDER BY seq DESC LIMIT 1)",
      sweep.value, seq.value, scheduler);
}

// Records the event of a request with an idempotency key. Sweep 0: the request created a sweep.
void RecordRequest(sqlite::Transaction& transaction, SweepId sweep,
                   const std::string& idempotency_key, EventSeq seq) {
  if (idempotency_key.empty()) return;
  transaction.Run("INSERT OR IGNORE INTO @requests (sweep, key, seq) VALUES (?, ?, ?)", sweep.value,
                  idempotency_key, seq.value);
}

double GpusOf(const std::vector<RankSlot>& ranks) {
  int percent = 0;
  for (const RankSlot& slot : ranks) percent += GpuPercent(slot);
  return percent / 100.0;
}

std::string DescribeFailure(const Failure& failure) {
  if (failure.log_tail.empty()) return failure.message;
  return failure.message + "\n" + failure.log_tail;
}

}  // namespace

// The tables contain the times that people see.
void Projection::Change(sqlite::Transaction& transaction, const Event& event) {
  std::optional<Event> shifted;
  if (clock_offset_us_ != 0) {
    shifted = event;
    shifted->time = DisplayTime(event.time);
  }
  const Event& shown = shifted ? *shifted : event;
  AddActivity(transaction, shown);  // it reads values that the event replaces
  Dispatch<kTables>(shown.fact,
                    [&](const auto& fact) -> decltype(Handle(transaction, shown, fact)) {
                      Handle(transaction, shown, fact);
                    });
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const ClockAdjusted& fact) {
  transaction.Run("INSERT INTO @clock (seq, offset_us, reason) VALUES (?, ?, ?)", event.seq.value,
                  fact.offset_us, fact.reason);
  clock_offset_us_ = fact.offset_us;
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const SweepCreated& fact) {
  const SweepSpec& spec = *fact.spec;
  Json taken = Json::array();
  for (const WarmStart& start : *fact.warm_start) taken.push_back(start.text);
  const Json written = sweepfile::ToJson(spec);
  transaction.Run(
      "INSERT INTO @sweeps (sweep, name, owner, state, created, metric, mode, objectives, "
      "searcher, "
      "scheduler,"
      " max_trials, max_step, workers, spec, seq, warm_start, tags)"
      " VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      fact.sweep.value, spec.name, fact.owner, FormatTime(event.time), spec.objective().metric,
      spec.objective().mode == Mode::kMax ? "max" : "min", ObjectivesToJson(spec),
      spec.searcher.name, spec.scheduler.name, spec.stop.max_trials, spec.max_step.value,
      spec.gang.workers, Dump(written), event.seq.value, Dump(taken), Dump(Json(spec.tags)));
  SetPolicy(transaction, event.seq, fact.sweep, written);
  RecordRequest(transaction, SweepId(0), fact.idempotency_key, event.seq);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SweepPaused& fact) {
  transaction.Run("UPDATE @sweeps SET state = 'paused', reason = ? WHERE sweep = ?", fact.reason,
                  fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SweepResumed& fact) {
  transaction.Run("UPDATE @sweeps SET state = 'running', reason = '' WHERE sweep = ?",
                  fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const SweepEdited& fact) {
  const SweepSpec& spec = *fact.spec;
  const Json written = sweepfile::ToJson(spec);
  // Tags that users have set stay, unless the edit changes those of the sweep file.
  transaction.Run(
      "UPDATE @sweeps SET name = ?, max_trials = ?, max_step = ?, reason = '', edited = ?,"
      " edited_by = ?, changes = ?, spec = ?7,"
      " tags = CASE WHEN NOT json_valid(spec) THEN ?7 -> '$.tags'"
      " WHEN spec -> '$.tags' = ?7 -> '$.tags' THEN tags ELSE ?7 -> '$.tags' END"
      " WHERE sweep = ?8",
      spec.name, spec.stop.max_trials, spec.max_step.value, FormatTime(event.time), event.actor,
      Dump(Json(fact.changes)), Dump(written), fact.sweep.value);
  SetPolicy(transaction, event.seq, fact.sweep, written);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SweepReopened& fact) {
  transaction.Run("UPDATE @sweeps SET state = 'running', reason = ?, ended = NULL WHERE sweep = ?",
                  fact.reason, fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SweepStopping& fact) {
  transaction.Run("UPDATE @sweeps SET reason = ? WHERE sweep = ?", fact.reason, fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const SweepEnded& fact) {
  logged_.erase(fact.sweep);
  transaction.Run("UPDATE @sweeps SET state = ?, reason = ?, ended = ? WHERE sweep = ?",
                  Name(fact.state), fact.reason, FormatTime(event.time), fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SweepDeleted& fact) {
  progress_.Forget(fact.sweep);
  logged_.erase(fact.sweep);
  transaction.Run(
      "DELETE FROM @requests WHERE sweep = 0 AND seq = (SELECT seq FROM @sweeps WHERE sweep = ?)",
      fact.sweep.value);
  transaction.Run("DELETE FROM @sweeps WHERE sweep = ?", fact.sweep.value);
  transaction.Run("DELETE FROM @trial_counts WHERE sweep = ?", fact.sweep.value);
  if (fact.shared) return;  // the rest is erased with the events (erasure.h)
  for (const SweepTable& table : kSweepTables)
    transaction.Run("DELETE FROM @" + std::string(table.name) + " WHERE sweep = ?",
                    fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialCreated& fact) {
  std::optional<std::string> rationale;
  if (fact.rationale) rationale = Dump(RationaleToJson(**fact.rationale));
  const TrialPatch patch = fact.patch ? **fact.patch : TrialPatch();
  transaction.Run(
      "INSERT INTO @trials (sweep, number, state, config, origin, rationale, created, patch, code)"
      " VALUES (?, ?, 'pending', ?, ?, ?, ?, nullif(?, ''), nullif(?, ''))",
      fact.trial.sweep.value, fact.trial.number.value, Dump(sweepfile::ToJson(fact.config)),
      fact.origin, rationale, FormatTime(event.time), patch.sha256, patch.code);
  RecordRequest(transaction, fact.trial.sweep, fact.idempotency_key, event.seq);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const EnvironmentRecorded& fact) {
  transaction.Run("INSERT INTO @environments (sweep, executor, seq, record) VALUES (?, ?, ?, ?)",
                  fact.sweep.value, fact.executor, event.seq.value, fact.record);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const TrialReopened& fact) {
  const TrialId& trial = fact.record.id;
  transaction.Run(
      "UPDATE @trials SET state = 'pending', reason = ?, ended = NULL, not_before = NULL,"
      " milestone = 0, step = iif(?, 0, step) WHERE sweep = ? AND number = ?",
      fact.reason, fact.from_start, trial.sweep.value, trial.number.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const AttemptAssigned& fact) {
  const TrialId& trial = fact.attempt.trial;
  progress_.Write(transaction, trial);
  std::optional<int64_t> resumed_from;
  if (fact.resume) resumed_from = fact.resume->step.value;
  transaction.Run(
      "INSERT INTO @attempts (sweep, trial, number, epoch, state, executor, ranks, workers, gpus,"
      " resumed_from, decided) VALUES (?, ?, ?, ?, 'assigned', ?, ?, ?, ?, ?, ?)",
      trial.sweep.value, trial.number.value, fact.attempt.number, fact.epoch.value,
      fact.ranks.empty() ? std::string() : fact.ranks.front().executor,
      Dump(RanksToJson(fact.ranks)), fact.ranks.size(), GpusOf(fact.ranks), resumed_from,
      FormatTime(event.time));
  transaction.Run(
      "UPDATE @trials SET state = 'running', reason = '', not_before = NULL, attempts = ?,"
      " milestone = ?, seconds_before = seconds WHERE sweep = ? AND number = ?",
      fact.attempt.number, fact.milestone.value, trial.sweep.value, trial.number.value);
  transaction.Run("UPDATE @sweeps SET reserved = NULL WHERE sweep = ? AND reserved IS NOT NULL",
                  trial.sweep.value);
  RecordRequest(transaction, trial.sweep, fact.idempotency_key, event.seq);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const AttemptStarted& fact) {
  transaction.Run(
      "UPDATE @attempts SET state = 'running', pids = ?, started = ?"
      " WHERE sweep = ? AND trial = ? AND number = ?",
      Dump(fact.pids), FormatTime(event.time), fact.attempt.trial.sweep.value,
      fact.attempt.trial.number.value, fact.attempt.number);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const AttemptFirstStep& fact) {
  transaction.Run(
      "UPDATE @attempts SET first_step = ? WHERE sweep = ? AND trial = ? AND number = ?",
      FormatTime(fact.at), fact.attempt.trial.sweep.value, fact.attempt.trial.number.value,
      fact.attempt.number);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialReported& fact) {
  progress_.Add(transaction, event.seq, fact);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialDecided& fact) {
  const TrialId& trial = fact.attempt.trial;
  const Reason& reason = fact.verdict.reason;
  std::optional<uint32_t> donor;
  std::optional<std::string> config;
  if (fact.verdict.kind == VerdictKind::kExploit) {
    donor = fact.verdict.donor.trial.number.value;
    config = Dump(sweepfile::ToJson(fact.verdict.config));
  }
  AddDecision(transaction, event,
              {.trial = trial,
               .attempt = fact.attempt.number,
               .step = fact.step.value,
               .verdict = Name(fact.verdict.kind),
               .milestone = fact.milestone,
               .donor = donor,
               .config = config},
              reason);
  if (fact.verdict.kind == VerdictKind::kExploit && fact.cloned) {
    AddClone(transaction, event.seq, trial, fact.verdict.donor.trial.number, **fact.cloned);
    progress_.Write(transaction, trial);
    // The trial's step becomes that of the donor's checkpoint, so it is not the attempt's any more.
    transaction.Run("UPDATE @attempts SET step = ? WHERE sweep = ? AND trial = ? AND number = ?",
                    fact.step.value, trial.sweep.value, trial.number.value, fact.attempt.number);
    transaction.Run(
        "UPDATE @trials SET config = ?, origin = ?, rationale = ?, step = ?"
        " WHERE sweep = ? AND number = ?",
        config, reason.rule, RationaleOf(reason, fact.verdict.donor),
        (*fact.cloned)->ref.step.value, trial.sweep.value, trial.number.value);
  } else if (fact.verdict.kind == VerdictKind::kPause) {
    transaction.Run(
        "UPDATE @trials SET state = 'paused', reason = ? WHERE sweep = ? AND number = ?",
        reason.text, trial.sweep.value, trial.number.value);
  } else if (fact.milestone.value > 0) {
    transaction.Run("UPDATE @trials SET milestone = ? WHERE sweep = ? AND number = ?",
                    fact.milestone.value, trial.sweep.value, trial.number.value);
  }
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const AttemptEnded& fact) {
  progress_.Write(transaction, fact.attempt.trial);
  progress_.Forget(fact.attempt.trial);
  const bool failed = fact.outcome == Outcome::kFailed;
  std::optional<int> rank;
  if (failed && fact.failure.rank >= 0) rank = fact.failure.rank;
  transaction.Run(
      "UPDATE @attempts SET state = 'ended', outcome = ?, failure = ?, failure_kind = ?,"
      " failure_rank = ?, ended = ?, step = ifnull(@attempts.step, t.step),"
      " seconds = t.seconds - t.seconds_before FROM @trials AS t"
      " WHERE t.sweep = @attempts.sweep AND t.number = @attempts.trial"
      " AND @attempts.sweep = ? AND @attempts.trial = ? AND @attempts.number = ?",
      Name(fact.outcome),
      failed                           ? DescribeFailure(fact.failure)
      : fact.outcome == Outcome::kLost ? fact.failure.message
                                       : std::string(),
      failed ? Name(fact.failure.kind) : std::string_view(), rank, FormatTime(event.time),
      fact.attempt.trial.sweep.value, fact.attempt.trial.number.value, fact.attempt.number);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialRequeued& fact) {
  std::optional<std::string> not_before;
  const Time shown = DisplayTime(fact.not_before);
  if (shown > event.time) not_before = FormatTime(shown);
  transaction.Run(
      "UPDATE @trials SET state = 'pending', reason = ?, not_before = ?"
      " WHERE sweep = ? AND number = ?",
      fact.reason, not_before, fact.trial.sweep.value, fact.trial.number.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialPromoted& fact) {
  const TrialId& trial = fact.trial;
  std::optional<uint32_t> donor;
  if (fact.donor) donor = fact.donor->trial.number.value;
  std::optional<std::string> config;
  if (fact.config) config = Dump(sweepfile::ToJson(*fact.config));
  AddDecision(transaction, event,
              {.trial = trial, .verdict = kPromote, .donor = donor, .config = config}, fact.reason);
  transaction.Run(
      "UPDATE @trials SET state = 'pending', reason = ?, not_before = NULL"
      " WHERE sweep = ? AND number = ?",
      fact.reason.text, trial.sweep.value, trial.number.value);
  if (config)
    transaction.Run(
        "UPDATE @trials SET config = ?, origin = ?, rationale = ? WHERE sweep = ? AND number = ?",
        config, fact.reason.rule, RationaleOf(fact.reason, fact.donor), trial.sweep.value,
        trial.number.value);
  if (!fact.cloned) return;
  if (fact.donor) AddClone(transaction, event.seq, trial, fact.donor->trial.number, **fact.cloned);
  progress_.Write(transaction, trial);
  transaction.Run("UPDATE @trials SET step = ? WHERE sweep = ? AND number = ?",
                  (*fact.cloned)->ref.step.value, trial.sweep.value, trial.number.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const TrialEnded& fact) {
  transaction.Run(
      "UPDATE @trials SET state = ?, reason = ?, ended = ? WHERE sweep = ? AND number = ?",
      Name(fact.state), fact.reason, FormatTime(event.time), fact.trial.sweep.value,
      fact.trial.number.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&, const SlotsReserved& fact) {
  transaction.Run("UPDATE @sweeps SET reserved = ? WHERE sweep = ?", fact.executor,
                  fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const ReservationReleased& fact) {
  transaction.Run("UPDATE @sweeps SET reserved = NULL WHERE sweep = ?", fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const ExecutorJoined& fact) {
  transaction.Run(
      "INSERT INTO @executors (name, state, address, instance, incarnation, cpus, gpus, "
      "memory_bytes,"
      " joined, labels) VALUES (?, 'online', ?, ?, ?, ?, ?, ?, ?, ?)"
      " ON CONFLICT (name) DO UPDATE SET state = excluded.state, reason = '',"
      " address = excluded.address, instance = excluded.instance,"
      " incarnation = excluded.incarnation, cpus = excluded.cpus, gpus = excluded.gpus,"
      " memory_bytes = excluded.memory_bytes, joined = excluded.joined, lost = NULL,"
      " labels = excluded.labels, health_problem = NULL, quarantine_until = NULL,"
      " quarantine_reason = NULL",
      fact.name, fact.address, fact.instance, fact.incarnation.value, fact.resources.cpus,
      fact.resources.gpus, fact.resources.memory_bytes, FormatTime(event.time),
      Dump(Json(fact.labels)));
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const ExecutorDrained& fact) {
  transaction.Run(
      "UPDATE @executors SET drained = coalesce(drained, ?), drain_reason = ? WHERE name = ?",
      FormatTime(event.time), fact.reason, fact.name);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const ExecutorResumed& fact) {
  transaction.Run(
      "UPDATE @executors SET drained = NULL, drain_reason = NULL, quarantine_until = NULL,"
      " quarantine_reason = NULL WHERE name = ?",
      fact.name);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const ExecutorHealth& fact) {
  transaction.Run("UPDATE @executors SET health_problem = nullif(?, '') WHERE name = ?",
                  fact.problem, fact.name);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const ExecutorQuarantined& fact) {
  transaction.Run(
      "UPDATE @executors SET quarantine_until = ?, quarantine_reason = ? WHERE name = ?",
      FormatTime(DisplayTime(fact.until)), fact.reason, fact.name);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const ExecutorQuarantineEnded& fact) {
  transaction.Run(
      "UPDATE @executors SET quarantine_until = NULL, quarantine_reason = NULL WHERE name = ?",
      fact.name);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const ExecutorLost& fact) {
  transaction.Run(
      "UPDATE @executors SET state = 'lost', reason = ?, lost = ?, health_problem = NULL,"
      " quarantine_until = NULL, quarantine_reason = NULL WHERE name = ?",
      fact.reason, FormatTime(event.time), fact.name);
}

}  // namespace attune::server

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/base/content_hash.h"
#include "core/state/applier.h"
#include "core/state/ended.h"
#include "core/state/retention.h"
#include "core/state/shared_state.h"

namespace attune {

// ---- sweeps ------------------------------------------------------------------------------

void Applier::operator()(const SweepCreated& fact) {
  Sweep& sweep = state_.sweeps[fact.sweep];
  sweep.id = fact.sweep;
  sweep.spec = *fact.spec;
  state_.algorithms->Complete(sweep.spec);
  sweep.idempotency_key = fact.idempotency_key;
  sweep.owner = fact.owner;
  sweep.running_since = now_;
  MakeAlgorithms(sweep);
  if (!fact.idempotency_key.empty()) state_.by_key[fact.idempotency_key] = fact.sweep;
  state_.last_sweep = fact.sweep;
}

void Applier::operator()(const SweepPaused& fact) {
  Sweep& sweep = SweepAt(fact.sweep);
  sweep.state = SweepState::kPaused;
  sweep.ran_us += now_.us - sweep.running_since.us;
}

void Applier::operator()(const SweepResumed& fact) {
  Sweep& sweep = SweepAt(fact.sweep);
  sweep.state = SweepState::kRunning;
  sweep.running_since = now_;
  for (TrialNumber number : sweep.live) {
    Trial& trial = *sweep.Find(number);
    if (trial.yield_verdict && trial.yield_verdict->kind == VerdictKind::kPause)
      trial.yield_verdict.reset();
  }
}

void Applier::operator()(const SweepEdited& fact) { Edit(fact.sweep, *fact.spec); }

void Applier::operator()(const SweepReopened& fact) {
  Sweep& sweep = state_.sweeps[fact.sweep];
  const Status read = ReadEnded(state_, fact.sweep, sweep);
  ATTUNE_CHECK(read.ok());
  sweep.state = SweepState::kRunning;
  sweep.running_since = now_;
  sweep.early_failures = {};
  sweep.failed_builds.clear();
  sweep.excluded.clear();
  if (sweep.stopping_as == SweepState::kFailed) sweep.stopping_as.reset();
  if (!sweep.stopping_as) sweep.reason.clear();
  std::erase(state_.reopenable, fact.sweep);
  state_.ended.erase(fact.sweep);
}

void Applier::operator()(const SweepStopping& fact) {
  Sweep& sweep = SweepAt(fact.sweep);
  sweep.stopping_as = fact.outcome;
  // Running trials continue. A trial that leaves to grow would not start again, so it stays.
  for (TrialNumber number : sweep.live) {
    Trial& trial = *sweep.Find(number);
    if (trial.yield_verdict && trial.yield_verdict->kind == VerdictKind::kResize)
      trial.yield_verdict.reset();
  }
  sweep.thinking.reset();
  sweep.reason = fact.reason;
}

void Applier::operator()(const SweepEnded& fact) {
  Sweep& sweep = SweepAt(fact.sweep);
  if (sweep.state != SweepState::kPaused) sweep.ran_us += now_.us - sweep.running_since.us;
  sweep.state = fact.state;
  sweep.reason = fact.reason;
  sweep.thinking.reset();
  AddEnded(state_, sweep);
  state_.sweeps.erase(fact.sweep);
}

void Applier::operator()(const SweepDeletionScheduled& fact) {
  state_.deletions[fact.sweep] = {.at = fact.at, .requester = actor_};
}

void Applier::operator()(const SweepUndeleted& fact) { state_.deletions.erase(fact.sweep); }

void Applier::operator()(const SweepDeleted& fact) {
  ForgetEnded(state_, fact.sweep);
  state_.deletions.erase(fact.sweep);
  if (!fact.idempotency_key.empty()) state_.by_key[fact.idempotency_key] = fact.sweep;
  state_.deleted.insert(fact.sweep);
  state_.last_sweep = std::max(state_.last_sweep, fact.sweep);
  if (fact.shared) RestoreShared(state_, **fact.shared, fact.sweep);
  for (auto& [executor, removals] : state_.removals) {  // all files of the sweep are removed anyway
    std::erase_if(removals,
                  [&](const auto& removal) { return removal.first.trial.sweep == fact.sweep; });
  }
  std::erase_if(state_.removals, [](const auto& holder) { return holder.second.empty(); });
  for (const auto& [name, executor] : state_.executors)
    state_.sweep_removals[FolderOf(executor)].insert(fact.sweep);
}

void Applier::operator()(const SweepRemoved& fact) {
  const auto removals = state_.sweep_removals.find(fact.folder);
  if (removals == state_.sweep_removals.end()) return;
  removals->second.erase(fact.sweep);
  if (removals->second.empty()) state_.sweep_removals.erase(removals);
}

void Applier::operator()(const SearchWaits& fact) { SweepAt(fact.sweep).thinking.reset(); }

void Applier::operator()(const SearchExhausted& fact) {
  Sweep& sweep = SweepAt(fact.sweep);
  sweep.exhausted = true;
  sweep.thinking.reset();
  if (sweep.reason.empty()) sweep.reason = fact.reason;
}

// ---- slots and executors -----------------------------------------------------------------

void Applier::operator()(const SlotsReserved& fact) {
  Reservation reservation{.sweep = fact.sweep, .since = state_.last_epoch};
  for (const GangPart& part : fact.parts) reservation.workers[part.executor] = part.workers;
  if (fact.parts.empty())
    reservation.workers[fact.executor] = MinWorkers(SweepAt(fact.sweep).spec.gang);
  state_.reservation = std::move(reservation);
  state_.changed_parts.reservation = true;
}

void Applier::operator()(const ReservationReleased&) { EndReservation(); }

void Applier::operator()(const ExecutorJoined& fact) {
  Executor& executor = state_.executors[fact.name];
  std::optional<Drain> drain = std::move(executor.drain);
  executor = {
      .name = fact.name,
      .instance = fact.instance,
      .incarnation = fact.incarnation,
      .address = fact.address,
      .folder = fact.folder,
      .drain = std::move(drain),
      .host = {.name = fact.name,
               .total = fact.resources,
               .cpus_free = fact.resources.cpus,
               .memory_free = fact.resources.memory_bytes,
               .spans = fact.spans,
               .labels = fact.labels,
               .lifetime = fact.time_left,
               .end_time = Time{now_.us + static_cast<int64_t>(fact.time_left.value * 1e6)}}};
  if (fact.time_left.value > 0)
    state_.ending.insert(fact.name);
  else
    state_.ending.erase(fact.name);
  if (!fact.folder.empty()) state_.folders[fact.folder].insert(fact.name);
  if (!fact.deleted.empty())
    state_.sweep_removals[FolderOf(executor)].insert(fact.deleted.begin(), fact.deleted.end());
  NoteChange(fact.name);
  for (int gpu = 0; gpu < fact.resources.gpus; ++gpu) executor.host.gpus_free.push_back(gpu);
  state_.last_incarnation = fact.incarnation;
}

void Applier::operator()(const ExecutorLost& fact) {
  Executor& executor = state_.executors.at(fact.name);
  executor.lost = true;
  executor.lost_at = now_;
  executor.problem.clear();
  executor.quarantine.reset();
  const auto folder = state_.folders.find(executor.folder);
  if (folder != state_.folders.end()) {
    folder->second.erase(fact.name);
    if (folder->second.empty()) state_.folders.erase(folder);
  }
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorDrained& fact) {
  std::optional<Drain>& drain = state_.executors.at(fact.name).drain;
  drain = Drain{.since = drain ? drain->since : now_, .reason = fact.reason, .now = fact.now};
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorResumed& fact) {
  Executor& executor = state_.executors.at(fact.name);
  executor.drain.reset();
  executor.quarantine.reset();
  executor.gang_history = {};
  for (auto& [id, sweep] : state_.sweeps) {
    bool may_start_there = sweep.excluded.erase(fact.name) > 0;
    for (auto& [number, trial] : sweep.trials)
      may_start_there |= trial.avoided.erase(fact.name) > 0;
    if (may_start_there && !state_.changed_parts.all) state_.changed_parts.sweeps.insert(id);
  }
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorHealth& fact) {
  state_.executors.at(fact.name).problem = fact.problem;
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorQuarantined& fact) {
  Executor& executor = state_.executors.at(fact.name);
  executor.quarantine = Quarantine{.until = fact.until, .reason = fact.reason};
  executor.gang_history.failed.clear();
  ++executor.gang_history.times;
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorQuarantineEnded& fact) {
  state_.executors.at(fact.name).quarantine.reset();
  NoteChange(fact.name);
}

void Applier::operator()(const EnvironmentRecorded& fact) {
  const auto sweep = state_.sweeps.find(fact.sweep);
  if (sweep != state_.sweeps.end())
    sweep->second.environments[fact.executor] = ContentHash(fact.record);
}

void Applier::operator()(const ExecutorExcluded& fact) {
  SweepAt(fact.sweep).excluded[fact.name] = state_.executors.at(fact.name).incarnation;
  NoteChange(fact.name);
}

void Applier::operator()(const ExecutorForgotten& fact) {
  state_.executors.erase(fact.name);
  state_.ending.erase(fact.name);
  state_.removals.erase(fact.name);
  std::set<std::string> folders;
  for (const auto& [name, executor] : state_.executors) folders.insert(FolderOf(executor));
  std::erase_if(state_.sweep_removals,
                [&](const auto& removals) { return !folders.contains(removals.first); });
  NoteChange(fact.name);
}

void Applier::operator()(const LogIdentified& fact) {
  const bool is_first = state_.parts.empty();
  state_.parts.push_back({.identity = fact.identity,
                          .begin = is_first ? EventSeq(1) : state_.last_seq,
                          .began = state_.last_time,
                          .last_sweep = is_first ? SweepId(0) : fact.last_sweep,
                          .last_epoch = is_first ? Epoch(0) : fact.last_epoch});
  state_.last_epoch = fact.last_epoch;
}

void Applier::operator()(const ClockAdjusted& fact) { state_.clock_offset_us = fact.offset_us; }

void Applier::NoteGangHistory(const Attempt& attempt, const AttemptEnded& end) {
  if (end.outcome == Outcome::kFailed && BlamesHost(end.failure)) {
    const auto executor = state_.executors.find(end.failure.executor);
    if (executor == state_.executors.end()) return;  // an attempt without ranks has no executor
    std::vector<TrialId>& failed = executor->second.gang_history.failed;
    if (failed.size() == kFailuresKept) failed.erase(failed.begin());
    failed.push_back(attempt.id.trial);
    executor->second.gang_history.worked = false;
  } else if (end.outcome == Outcome::kFinished || end.outcome == Outcome::kStopped ||
             end.outcome == Outcome::kPaused) {
    for (const RankSlot& slot : attempt.ranks) {
      const auto executor = state_.executors.find(slot.executor);
      if (executor != state_.executors.end()) executor->second.gang_history = {.worked = true};
    }
  }
}

// ---- helpers --------------------------------------------------------------------------------

void Applier::NoteChange(const std::string& executor) {
  if (!state_.changed_parts.all) state_.changed_parts.executors.insert(executor);
}

void Applier::EndReservation() {
  state_.reservation.reset();
  state_.changed_parts.reservation = true;
}

Sweep& Applier::SweepAt(SweepId id) {
  const auto found = state_.sweeps.find(id);
  ATTUNE_CHECK(found != state_.sweeps.end());
  return found->second;
}

Trial& Applier::TrialAt(const TrialId& id) {
  Trial* trial = SweepAt(id.sweep).Find(id.number);
  ATTUNE_CHECK(trial != nullptr);
  return *trial;
}

void Applier::Edit(SweepId id, SweepSpec spec) {
  Sweep& sweep = SweepAt(id);
  if (sweep.spec.stop.plateau != spec.stop.plateau) {
    for (auto& [number, trial] : sweep.trials) trial.plateau_state = {};
  }
  sweep.spec = std::move(spec);
  state_.algorithms->Complete(sweep.spec);
  sweep.edited = state_.last_seq;
  sweep.stopping_as.reset();
  sweep.exhausted = false;  // the searcher may have more now
  sweep.thinking.reset();   // its searcher was saved before the edit
  sweep.reason.clear();
  sweep.since_best = 0;
  sweep.reached.reset();
  for (const Best& report : sweep.front) NoteReached(sweep, report);
  sweep.searcher->Adapt(sweep.spec);
  sweep.scheduler->Adapt(sweep.spec);
}

void Applier::MakeAlgorithms(Sweep& sweep) {
  auto searcher = state_.algorithms->MakeSearcher(sweep.spec);
  auto scheduler = state_.algorithms->MakeScheduler(sweep.spec);
  ATTUNE_CHECK(searcher.ok() && scheduler.ok());
  sweep.searcher = std::move(searcher).value();
  sweep.scheduler = std::move(scheduler).value();
}

void Applier::Occupy(Sweep& sweep, const Trial& trial, const RankSlot& slot) {
  Executor& executor = state_.executors.at(slot.executor);
  executor.attempts.emplace(trial.live->epoch, trial.id);
  OccupySlot(slot, executor.host);
  NoteChange(slot.executor);
  sweep.used.cpus += slot.cpus;
  sweep.used.gpu_percent += GpuPercent(slot);
  sweep.used.memory_bytes += slot.memory_bytes;
}

void Applier::Release(Sweep& sweep, const Trial& trial, const RankSlot& slot) {
  NoteChange(slot.executor);
  sweep.gpu_seconds +=
      GpuPercent(slot) / 100.0 * 1e-6 * static_cast<double>(now_.us - trial.live->assigned_at.us);
  Executor& executor = state_.executors.at(slot.executor);
  executor.attempts.erase(trial.live->epoch);
  ReleaseSlot(slot, executor.host);
  sweep.used.cpus -= slot.cpus;
  sweep.used.gpu_percent -= GpuPercent(slot);
  sweep.used.memory_bytes -= slot.memory_bytes;
}

// ---- one event -----------------------------------------------------------------------------

namespace {

// Whether something may follow from the fact, or a searcher or a scheduler learns from it.
bool MayCauseDecisions(const Fact& fact) {
  return !std::holds_alternative<MetricsLogged>(fact) &&
         !std::holds_alternative<EnvironmentRecorded>(fact) &&
         !std::holds_alternative<SweepAnnotated>(fact) &&
         !std::holds_alternative<TrialAnnotated>(fact);
}

}  // namespace

void Apply(State& state, const Event& event) {
  ATTUNE_CHECK(event.seq > state.last_seq);
  state.last_seq = event.seq;
  state.last_time = event.time;
  std::visit(Applier(state, event), event.fact);
  if (InfoOf(event.fact).concerns & kTrialRecord) {
    state.changes.push_back({*TrialOf(event.fact), event.seq});
    if (state.changes.size() > kRecordChanges) {
      state.changes_after = state.changes.front().seq;
      state.changes.pop_front();
    }
  }
  const auto id = SweepOf(event.fact);
  if (!id || !MayCauseDecisions(event.fact)) return;
  if (!state.changed_parts.all) state.changed_parts.sweeps.insert(*id);
  const auto sweep = state.sweeps.find(*id);
  if (sweep == state.sweeps.end()) return;  // this event ended the sweep
  sweep->second.searcher->Observe(event);
  sweep->second.scheduler->Observe(event);
  if (!std::holds_alternative<TrialReported>(event.fact)) ReviewRetained(sweep->second);
  sweep->second.search_waits = std::holds_alternative<SearchWaits>(event.fact);
  if (const auto* begun = std::get_if<ProposalBegun>(&event.fact)) {
    ArchiveWriter bytes;
    sweep->second.searcher->Save(bytes);
    sweep->second.thinking = {begun->proposal, event.seq, bytes.Take()};
  }
}

}  // namespace attune

#include "core/state/snapshot.h"

#include <utility>

#include "base/result.h"
#include "core/base/content_hash.h"
#include "core/log/fields.h"

// Change kForm after each change of the fields here or in core/log/fields.h, or of the bytes that a
// searcher or a scheduler saves.
namespace attune {

// ---- the state -------------------------------------------------------------------------------

template <class A>
void Fields(A& archive, Like<A, Attempt>& attempt) {
  archive(attempt.id, attempt.epoch, attempt.state, attempt.stepped, attempt.ranks,
          attempt.ended_parts, attempt.part_outcome, attempt.failure, attempt.rendezvous,
          attempt.resume, attempt.assigned_at, attempt.seconds, attempt.logged, attempt.verdict,
          attempt.verdict_step, attempt.unwaited_step, attempt.lease, attempt.lease_until);
}
template <class A>
void Fields(A& archive, Like<A, PlateauState>& plateau_state) {
  archive(plateau_state.best, plateau_state.best_step, plateau_state.since_best,
          plateau_state.values);
}
template <class A>
void Fields(A& archive, Like<A, Trial>& trial) {
  archive(trial.id, trial.config, trial.patch, trial.state, trial.attempts, trial.failures,
          trial.last_step, trial.milestone, trial.until, trial.requested, trial.paused_with_sweep,
          trial.not_before, trial.seconds, trial.best, trial.since_best, trial.plateau_state,
          trial.yield_verdict, trial.checkpoints, trial.donor, trial.cloned, trial.live,
          trial.avoided, trial.earlier_attempts, trial.filled_disk);
}
template <class A>
void Fields(A& archive, Like<A, BegunProposal>& begun) {
  archive(begun.proposal, begun.position, begun.searcher);
}
template <class A>
void Fields(A& archive, Like<A, EarlyFailures>& early) {
  archive(early.count, early.trials, early.executors);
}
template <class A>
void Fields(A& archive, Like<A, Occupied>& occupied) {
  archive(occupied.cpus, occupied.gpu_percent, occupied.memory_bytes);
}
template <class A>
void PlainFields(A& archive, Like<A, Sweep>& sweep) {
  archive(sweep.id, sweep.spec, sweep.idempotency_key, sweep.owner, sweep.state, sweep.stopping_as,
          sweep.reason, sweep.exhausted, sweep.thinking, sweep.search_waits, sweep.reported,
          sweep.finite, sweep.early_failures, sweep.failed_builds, sweep.environments, sweep.trials,
          sweep.created, sweep.points_used, sweep.next_proposal, sweep.pending, sweep.delayed,
          sweep.live, sweep.surplus, sweep.clones, sweep.paused, sweep.retained, sweep.by_key,
          sweep.used, sweep.excluded);
  for (auto& count : sweep.by_state) archive(count);
  archive(sweep.front, sweep.reached, sweep.edited, sweep.since_best, sweep.running_since,
          sweep.ran_us, sweep.gpu_seconds, sweep.report_gap);
}
template <class A>
void Fields(A& archive, Like<A, EndedSweep>& ended) {
  archive(ended.state, ended.idempotency_key, ended.mark, ended.pins, ended.dropped, ended.stored);
}
template <class A>
void Fields(A& archive, Like<A, Host>& host) {
  archive(host.name, host.total, host.cpus_free, host.memory_free, host.gpus_free, host.shared,
          host.spans, host.labels, host.lifetime, host.end_time);
}
template <class A>
void Fields(A& archive, Like<A, Drain>& drain) {
  archive(drain.since, drain.reason, drain.now);
}
template <class A>
void Fields(A& archive, Like<A, Quarantine>& quarantine) {
  archive(quarantine.until, quarantine.reason);
}
template <class A>
void Fields(A& archive, Like<A, Executor>& executor) {
  archive(executor.name, executor.instance, executor.incarnation, executor.address, executor.folder,
          executor.lost, executor.lost_at, executor.drain, executor.problem, executor.quarantine,
          executor.gang_history, executor.host, executor.attempts);
}
template <class A>
void Fields(A& archive, Like<A, Reservation>& reservation) {
  archive(reservation.sweep, reservation.workers, reservation.since);
}
template <class A>
void Fields(A& archive, Like<A, ScheduledDeletion>& deletion) {
  archive(deletion.at, deletion.requester);
}
template <class A>
void Fields(A& archive, Like<A, RecordChange>& change) {
  archive(change.trial, change.seq);
}
template <class A>
void Fields(A& archive, Like<A, LogPart>& part) {
  archive(part.identity, part.begin, part.began, part.last_sweep, part.last_epoch);
}
template <class A>
void PlainFields(A& archive, Like<A, State>& state) {
  archive(state.ended, state.reopenable, state.by_key, state.executors, state.folders, state.ending,
          state.reservation, state.removals, state.deleted, state.sweep_removals, state.changes,
          state.changes_after, state.last_seq, state.last_time, state.last_sweep, state.last_epoch,
          state.last_incarnation, state.parts, state.clock_offset_us, state.deletions);
}

namespace {

constexpr uint32_t kForm = 6;

// Most changes of the fields change this number, in case somebody forgets kForm.
constexpr uint64_t kShape = sizeof(Sweep) * 1'000'003 + sizeof(Trial) * 1'009 + sizeof(State);

const Error kNotOurs{ErrorCode::kCorrupt, "the snapshot is damaged, or another version wrote it"};

std::string Stamp(const std::string& body) {
  ArchiveWriter whole;
  whole(kForm, kShape, ContentHash(body), body);
  return whole.Take();
}

std::optional<std::string> Unstamp(std::string_view bytes) {
  uint32_t form = 0;
  uint64_t shape = 0;
  uint64_t mark = 0;
  std::string body;
  ArchiveReader whole(bytes);
  whole(form, shape, mark, body);
  if (!whole.AtEnd() || form != kForm || shape != kShape || mark != ContentHash(body))
    return std::nullopt;
  return body;
}

void WriteSweep(ArchiveWriter& archive, const Sweep& sweep) {
  PlainFields(archive, sweep);
  ArchiveWriter searcher, scheduler;
  sweep.searcher->Save(searcher);
  sweep.scheduler->Save(scheduler);
  archive(searcher.Take(), scheduler.Take());
}

template <class Algorithm>
bool Restore(Result<std::unique_ptr<Algorithm>> made, const std::string& bytes,
             std::unique_ptr<Algorithm>& algorithm) {
  if (!made.ok()) return false;
  algorithm = std::move(made).value();
  ArchiveReader archive(bytes);
  algorithm->Load(archive);
  return archive.AtEnd();
}

void ReadSweep(ArchiveReader& archive, const Algorithms& algorithms, Sweep& sweep) {
  std::string searcher, scheduler;
  PlainFields(archive, sweep);
  archive(searcher, scheduler);
  if (!archive.ok()) return;
  algorithms.Complete(sweep.spec);
  for (const auto& [number, trial] : sweep.trials) {
    if (!trial.live) continue;
    if (trial.live->lease.value > 0) sweep.leases.emplace(trial.live->lease_until, number);
    if (const auto grows = MayGrowFrom(sweep.spec, *trial.live))
      sweep.small.emplace(*grows, number);
  }
  if (!Restore(algorithms.MakeSearcher(sweep.spec), searcher, sweep.searcher) ||
      !Restore(algorithms.MakeScheduler(sweep.spec), scheduler, sweep.scheduler))
    archive.Fail();
}

}  // namespace

std::string SaveSweep(const Sweep& sweep) {
  ArchiveWriter archive;
  WriteSweep(archive, sweep);
  return Stamp(archive.Take());
}

Status LoadSweep(std::string_view bytes, const Algorithms& algorithms, Sweep& sweep) {
  const auto body = Unstamp(bytes);
  if (!body) return kNotOurs;
  ArchiveReader archive(*body);
  ReadSweep(archive, algorithms, sweep);
  if (!archive.AtEnd()) return kNotOurs;
  return {};
}

std::string SaveState(const State& state) {
  ArchiveWriter archive;
  PlainFields(archive, state);
  archive(state.sweeps.size());
  for (const auto& [id, sweep] : state.sweeps) WriteSweep(archive, sweep);
  return Stamp(archive.Take());
}

Status LoadState(std::string_view bytes, State& state) {
  const auto body = Unstamp(bytes);
  if (!body) return kNotOurs;
  ArchiveReader archive(*body);
  PlainFields(archive, state);
  size_t sweeps = 0;
  archive(sweeps);
  for (; archive.ok() && sweeps > 0; --sweeps) {
    Sweep sweep;
    ReadSweep(archive, *state.algorithms, sweep);
    const SweepId id = sweep.id;
    if (archive.ok()) state.sweeps.emplace(id, std::move(sweep));
  }
  if (!archive.AtEnd()) return kNotOurs;
  return {};
}

}  // namespace attune

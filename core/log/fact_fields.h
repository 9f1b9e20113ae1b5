#pragma once

#include "core/log/fields.h"

// What facts consist of, once for every archive (archive.h): the payloads of the log, snapshots,
// the audit, and the columns that name what a fact is about. A name that stands here lies in logs,
// and stays; what is added to a fact later is `archive.Later`.
namespace attune {

// What the fact is about: the columns of its row name the sweep and the trial, the payload the
// rest.
template <class A>
void About(A& archive, Like<A, SweepId>& sweep) {
  archive.Row(sweep);
}
template <class A>
void About(A& archive, Like<A, TrialId>& trial) {
  archive.Row(trial);
}
template <class A>
void About(A& archive, Like<A, AttemptId>& attempt) {
  archive.Row(attempt.trial);
  archive("attempt", attempt.number);
}
template <class A>
void About(A& archive, Like<A, CheckpointId>& checkpoint) {
  archive.Row(checkpoint.trial);
  archive("attempt", checkpoint.attempt);
  archive("step", checkpoint.step);
}

// ---- sweeps ----------------------------------------------------------------------------------

template <class A>
void Fields(A& archive, Like<A, SweepCreated>& fact) {
  About(archive, fact.sweep);
  archive("spec", fact.spec);
  archive("source", fact.source);
  archive("idempotency_key", fact.idempotency_key);
  archive.Later("owner", fact.owner);
  archive.Sparse("warm_start", fact.warm_start);
}
template <class A>
void Fields(A& archive, Like<A, SweepPaused>& fact) {
  About(archive, fact.sweep);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, SweepResumed>& fact) {
  About(archive, fact.sweep);
}
template <class A>
void Fields(A& archive, Like<A, SweepExtended>& fact) {
  About(archive, fact.sweep);
  archive("stop", fact.stop);
  archive("max_step", fact.max_step);
}
template <class A>
void Fields(A& archive, Like<A, SweepEdited>& fact) {
  About(archive, fact.sweep);
  archive("spec", fact.spec);
  archive("changes", fact.changes);
}
template <class A>
void Fields(A& archive, Like<A, SweepReopened>& fact) {
  About(archive, fact.sweep);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, SweepStopping>& fact) {
  About(archive, fact.sweep);
  archive("outcome", fact.outcome);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, SweepEnded>& fact) {
  About(archive, fact.sweep);
  archive("state", fact.state);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, SearchExhausted>& fact) {
  About(archive, fact.sweep);
  archive.Sparse("reason", fact.reason);
  archive.Sparse("thought", fact.thought);
}
template <class A>
void Fields(A& archive, Like<A, ProposalBegun>& fact) {
  About(archive, fact.sweep);
  archive("proposal", fact.proposal);
}
template <class A>
void Fields(A& archive, Like<A, SearchWaits>& fact) {
  About(archive, fact.sweep);
  archive("thought", fact.thought);
  archive("reason", fact.reason);
}

// ---- trials and attempts ---------------------------------------------------------------------

// The number of a proposal in logs of before they were counted.
inline std::optional<ProposalNumber> UncountedProposal(const TrialCreated& fact) {
  if (fact.origin == kInitialPoints || fact.origin == kEnqueued) return std::nullopt;
  return ProposalNumber(fact.trial.number.value);
}
template <class A>
void Fields(A& archive, Like<A, TrialCreated>& fact) {
  About(archive, fact.trial);
  archive("config", fact.config);
  archive("origin", fact.origin);
  archive.Sparse("idempotency_key", fact.idempotency_key);
  archive.Later("proposal", fact.proposal, UncountedProposal(fact));
  archive.Sparse("thought", fact.thought);
  archive.Sparse("rationale", fact.rationale);
}
template <class A>
void Fields(A& archive, Like<A, TrialReopened>& fact) {
  About(archive, fact.record.id);
  archive("config", fact.record.config);
  archive("state", fact.record.state);
  archive("attempts", fact.record.attempts);
  archive("last_step", fact.record.last_step);
  archive("seconds", fact.record.seconds);
  archive("checkpoints", fact.record.checkpoints);
  archive("until", fact.until);
  archive("from_start", fact.from_start);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, AttemptAssigned>& fact) {
  About(archive, fact.attempt);
  archive("epoch", fact.epoch);
  archive("ranks", fact.ranks);
  archive("resume", fact.resume);
  archive("milestone", fact.milestone);
  archive.Sparse("idempotency_key", fact.idempotency_key);
  archive.Sparse("reason", fact.reason);
  archive.Sparse("lease", fact.lease);
}
template <class A>
void Fields(A& archive, Like<A, AttemptRenewed>& fact) {
  About(archive, fact.attempt);
}
template <class A>
void Fields(A& archive, Like<A, AttemptStarted>& fact) {
  About(archive, fact.attempt);
  archive("pids", fact.pids);
}
template <class A>
void Fields(A& archive, Like<A, AttemptFirstStep>& fact) {
  About(archive, fact.attempt);
  archive("at_us", fact.at);
}
template <class A>
void Fields(A& archive, Like<A, RendezvousOpened>& fact) {
  About(archive, fact.attempt);
  archive("address", fact.rendezvous.address);
  archive("master_port", fact.rendezvous.master_port);
  archive.Sparse("host", fact.rendezvous.host);
  archive.Sparse("port", fact.rendezvous.port);
}
template <class A>
void Fields(A& archive, Like<A, TrialReported>& fact) {
  About(archive, fact.attempt);
  Fields(archive, fact.report);
}
template <class A>
void Fields(A& archive, Like<A, MetricsLogged>& fact) {
  About(archive, fact.attempt);
  archive("number", fact.number);
  archive("step", fact.step);
  archive("metrics", fact.metrics);
}
template <class A>
void Fields(A& archive, Like<A, TrialYielding>& fact) {
  About(archive, fact.trial);
  Fields(archive, fact.verdict);
}
template <class A>
void Fields(A& archive, Like<A, TrialDecided>& fact) {
  About(archive, fact.attempt);
  archive("step", fact.step);
  Fields(archive, fact.verdict);
  archive("milestone", fact.milestone);
  archive.Sparse("cloned", fact.cloned);
}
template <class A>
void Fields(A& archive, Like<A, TrialPromoted>& fact) {
  About(archive, fact.trial);
  archive("reason", fact.reason);
  archive.Sparse("config", fact.config);
  archive.Sparse("donor", fact.donor);
  archive.Sparse("cloned", fact.cloned);
}
template <class A>
void Fields(A& archive, Like<A, AttemptPartEnded>& fact) {
  About(archive, fact.attempt);
  archive("executor", fact.executor);
  archive("outcome", fact.outcome);
  if (fact.outcome == Outcome::kFailed || fact.outcome == Outcome::kLost)
    archive("failure", fact.failure);
}
template <class A>
void Fields(A& archive, Like<A, AttemptEnded>& fact) {
  About(archive, fact.attempt);
  archive("outcome", fact.outcome);
  if (fact.outcome == Outcome::kFailed || fact.outcome == Outcome::kLost)
    archive.Later("failure", fact.failure);
}
template <class A>
void Fields(A& archive, Like<A, TrialRequeued>& fact) {
  About(archive, fact.trial);
  archive("reason", fact.reason);
  archive.Later("not_before_us", fact.not_before);
  archive.Sparse("avoided", fact.avoided);
}
template <class A>
void Fields(A& archive, Like<A, TrialEnded>& fact) {
  About(archive, fact.trial);
  archive("state", fact.state);
  archive("reason", fact.reason);
}

// ---- checkpoints -----------------------------------------------------------------------------

template <class A>
void Fields(A& archive, Like<A, CheckpointSaved>& fact) {
  About(archive, fact.attempt);
  Fields(archive, fact.checkpoint);
  archive("bytes", fact.bytes);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointPinned>& fact) {
  About(archive, fact.checkpoint);
  archive("pinned", fact.pinned);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointDropped>& fact) {
  About(archive, fact.checkpoint);
  archive("executor", fact.executor);
  archive("path", fact.path);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, SweepDeleted>& fact) {
  About(archive, fact.sweep);
}
template <class A>
void Fields(A& archive, Like<A, SweepRemoved>& fact) {
  About(archive, fact.sweep);
  archive("folder", fact.folder);
  archive("executor", fact.executor);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointRemoved>& fact) {
  About(archive, fact.checkpoint);
}

// ---- slots and executors ---------------------------------------------------------------------

template <class A>
void Fields(A& archive, Like<A, GangPart>& part) {
  archive("executor", part.executor);
  archive("workers", part.workers);
}
template <class A>
void Fields(A& archive, Like<A, SlotsReserved>& fact) {
  About(archive, fact.sweep);
  archive("executor", fact.executor);
  archive("reason", fact.reason);
  archive.Sparse("parts", fact.parts);
}
template <class A>
void Fields(A& archive, Like<A, ReservationReleased>& fact) {
  About(archive, fact.sweep);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorJoined>& fact) {
  archive("name", fact.name);
  archive("instance", fact.instance);
  archive("incarnation", fact.incarnation);
  archive("address", fact.address);
  Fields(archive, fact.resources);
  archive.Sparse("spans", fact.spans);
  archive.Sparse("folder", fact.folder);
  archive.Sparse("labels", fact.labels);
  archive.Sparse("time_left", fact.time_left);
  archive.Sparse("deleted", fact.deleted);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorLost>& fact) {
  archive("name", fact.name);
  archive("incarnation", fact.incarnation);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorDrained>& fact) {
  archive("name", fact.name);
  archive.Sparse("reason", fact.reason);
  archive.Sparse("now", fact.now);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorResumed>& fact) {
  archive("name", fact.name);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorHealth>& fact) {
  archive("name", fact.name);
  archive("problem", fact.problem);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorSetAside>& fact) {
  archive("name", fact.name);
  archive("reason", fact.reason);
  archive("until_us", fact.until);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorReadmitted>& fact) {
  archive("name", fact.name);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorExcluded>& fact) {
  About(archive, fact.sweep);
  archive("name", fact.name);
  archive("reason", fact.reason);
}
template <class A>
void Fields(A& archive, Like<A, ExecutorForgotten>& fact) {
  archive("name", fact.name);
  archive("reason", fact.reason);
}

}  // namespace attune

#pragma once

#include <string>

#include "core/state/state.h"

namespace attune {

// Changes the state by one fact. Apply also tells the searcher and the scheduler.
class Applier {
 public:
  Applier(State& state, const Event& event)
      : state_(state), now_(event.time), actor_(event.actor) {}

  // ---- sweeps ------------------------------------------------------------------------------
  void operator()(const SweepCreated& fact);
  void operator()(const SweepPaused& fact);
  void operator()(const SweepResumed& fact);
  void operator()(const SweepEdited& fact);
  void operator()(const SweepReopened& fact);
  void operator()(const SweepStopping& fact);
  void operator()(const SweepEnded& fact);
  void operator()(const SweepAnnotated&) {}
  void operator()(const SweepDeletionScheduled& fact);
  void operator()(const SweepUndeleted& fact);
  void operator()(const SweepDeleted& fact);
  void operator()(const SweepRemoved& fact);
  void operator()(const ProposalBegun&) {}  // Apply saves the searcher after it has observed this
  void operator()(const SearchWaits& fact);
  void operator()(const SearchExhausted& fact);

  // ---- trials ------------------------------------------------------------------------------
  void operator()(const TrialCreated& fact);
  void operator()(const TrialReopened& fact);
  void operator()(const AttemptAssigned& fact);
  void operator()(const AttemptRenewed& fact);
  void operator()(const AttemptStarted& fact);
  void operator()(const AttemptFirstStep& fact);
  void operator()(const RendezvousOpened& fact);
  void operator()(const TrialReported& fact);
  void operator()(const MetricsLogged& fact);
  void operator()(const TrialYielding& fact);
  void operator()(const TrialDecided& fact);
  void operator()(const TrialPromoted& fact);
  void operator()(const AttemptPartEnded& fact);
  void operator()(const AttemptEnded& fact);
  void operator()(const TrialRequeued& fact);
  void operator()(const TrialAnnotated&) {}
  void operator()(const TrialEnded& fact);

  // ---- checkpoints -------------------------------------------------------------------------
  void operator()(const CheckpointSaved& fact);
  void operator()(const CheckpointPinned& fact);
  void operator()(const CheckpointDropped& fact);
  void operator()(const CheckpointRemoved& fact);
  void operator()(const CheckpointStored& fact);

  // ---- slots and executors -----------------------------------------------------------------
  void operator()(const SlotsReserved& fact);
  void operator()(const ReservationReleased&);
  void operator()(const ExecutorJoined& fact);
  void operator()(const ExecutorLost& fact);
  void operator()(const ExecutorDrained& fact);
  void operator()(const ExecutorResumed& fact);
  void operator()(const ExecutorHealth& fact);
  void operator()(const ExecutorQuarantined& fact);
  void operator()(const ExecutorQuarantineEnded& fact);
  void operator()(const ExecutorExcluded& fact);
  void operator()(const EnvironmentRecorded& fact);
  void operator()(const ExecutorForgotten& fact);

  // ---- the log -----------------------------------------------------------------------------
  void operator()(const LogIdentified& fact);
  void operator()(const ClockAdjusted& fact);

 private:
  void NoteChange(const std::string& executor);
  void EndReservation();
  Sweep& SweepAt(SweepId id);
  Trial& TrialAt(const TrialId& id);
  void Edit(SweepId id, SweepSpec spec);
  void MakeAlgorithms(Sweep& sweep);
  void SetState(Trial& trial, TrialState to);

  // Keeps Sweep::pending and Sweep::paused in step with the trial.
  void UpdateQueues(Sweep& sweep, const Trial& trial);
  void Clone(Sweep& sweep, Trial& trial, TrialNumber donor, const KeptCheckpoint& cloned);
  void AddPending(Sweep& sweep, const Trial& trial);
  // REQUIRES: not_before has not changed since the trial was added.
  static void RemovePending(Sweep& sweep, const Trial& trial);
  // Extends the lease of an attempt without ranks after a message from its client.
  void Renew(Sweep& sweep, Trial& trial) const;
  static void Remember(Sweep& sweep, const Trial& trial, const std::string& idempotency_key);
  // Ignores constraints, because a trial may satisfy them only later.
  static void NoteBest(const SweepSpec& spec, const Report& report, Trial& trial);
  // REQUIRES: every objective of the report is finite, and every constraint holds.
  void CountReport(Sweep& sweep, Trial& trial, Best report);
  void NoteReported(Sweep& sweep, Trial& trial);
  static void NoteReached(Sweep& sweep, const Best& report);
  void ReleaseDonor(Sweep& sweep, Trial& trial);
  void ReleaseClones(Sweep& sweep, const CheckpointId& donor);
  // Records on the attempt's executors whether its gang failed there.
  void NoteGangHistory(const Attempt& attempt, const AttemptEnded& end);
  void Occupy(Sweep& sweep, const Trial& trial, const RankSlot& slot);
  void Release(Sweep& sweep, const Trial& trial, const RankSlot& slot);

  State& state_;
  Time now_;
  const std::string& actor_;
};

}  // namespace attune

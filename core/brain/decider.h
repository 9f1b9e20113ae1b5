#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/log/command.h"
#include "core/state/state.h"

namespace attune {

// Decides on one command, for Decide (core/brain/decide.h). The facts that it has collected are not
// applied yet.
class Decider {
 public:
  Decider(const State& state, Time now) : state_(state), now_(now) {}

  // ---- sweeps (decide_sweep.cc) ------------------------------------------------------------
  Status operator()(const CreateSweep& command);
  Status operator()(const PauseSweep& command);
  Status operator()(const ResumeSweep& command);
  Status operator()(const ExtendSweep& command);
  Status operator()(const EditSweep& command);
  Status operator()(const StopSweep& command);
  Status operator()(const KillSweep& command);
  Status operator()(const AnnotateSweep& command);
  Status operator()(const DeleteSweep& command);
  Status operator()(const UndeleteSweep& command);
  Status operator()(const Propose& command);

  // ---- trials and checkpoints (decide_trial.cc) --------------------------------------------
  Status operator()(const EnqueueTrial& command);
  Status operator()(const KillTrial& command);
  Status operator()(const ReopenTrial& command);
  Status operator()(const AnnotateTrial& command);
  Status operator()(const AskTrial& command);
  Status operator()(const PinCheckpoint& command);
  Status operator()(const DropCheckpoint& command);

  // ---- executors and the log (decide.cc) ---------------------------------------------------
  Status operator()(const JoinExecutor& command);
  Status operator()(const LoseExecutor& command);
  Status operator()(const ReportHealth& command);
  Status operator()(const DrainExecutor& command);
  Status operator()(const LeaveExecutor& command);
  Status operator()(const ResumeExecutor& command);
  Status operator()(const RecordFact& command);
  Status operator()(const RecordEnvironment& command);
  Status operator()(const RecordRemoval& command);
  Status operator()(const RecordStored& command);
  Status operator()(const RecordSweepRemoval& command);
  Status operator()(const IdentifyLog& command);
  Status operator()(const AdjustClock& command);

  Facts TakeFacts() { return std::move(facts_); }

 private:
  // The words with which the messages of an edit refer to it and to its keys.
  struct EditWords {
    std::string reason = "edited on request";
    std::string stop = "stop.";
    std::string max_step = "scheduler.max";
  };

  static Error NotFound(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
  static Error Conflict(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

  void Add(Fact fact) { facts_.push_back(std::move(fact)); }

  // ---- checks that several commands share (decide.cc) --------------------------------------

  // Finds a sweep that has not ended.
  Result<const Sweep*> FindOpen(SweepId id) const;
  // Finds a sweep that has not ended, or reads a reopenable ended sweep into `opened`.
  Result<const Sweep*> FindOpenOrEnded(SweepId id, Sweep& opened) const;
  // Succeeds for ended sweeps, too.
  Status CheckExists(SweepId id) const;
  // Returns an error if the sweep does not exist, or if its deletion is scheduled.
  Status CheckStays(SweepId id) const;
  static Status CheckExists(const Sweep& sweep, const TrialId& trial);
  // Returns an error if the sweep starts no more trials.
  static Status CheckCanStart(const Sweep& sweep);
  // A repeated request does nothing. Another body with the same key is an error.
  static Status CheckSameBody(const std::string& earlier, const std::string& repeated);

  // Whether the record of a trial for which `is_affected` is true may have changed after `seen`.
  template <class Predicate>
  bool ChangedSince(EventSeq seen, Predicate is_affected) const {
    const auto later = std::ranges::upper_bound(state_.changes, seen, {}, &RecordChange::seq);
    return seen < state_.changes_after ||
           std::ranges::any_of(later, state_.changes.end(), is_affected, &RecordChange::trial);
  }

  // ---- sweeps ------------------------------------------------------------------------------
  Status CheckAlgorithms(const SweepSpec& spec) const;
  Status Edit(const Sweep& sweep, bool ended, SweepSpec spec, const EditWords& words);
  Status CheckEdit(const Sweep& sweep, const SweepSpec& spec, const EditWords& words) const;
  // Returns an error if an ended sweep would do nothing more with this specification.
  static Status CheckHasMoreToDo(const Sweep& sweep, const SweepSpec& spec, const EditWords& words);

  // ---- trials ------------------------------------------------------------------------------
  static bool IsLive(const Sweep& sweep, const AttemptId& attempt);
  static Status CheckReopening(const Sweep& sweep, const ReopenTrial& command);
  Status CheckCurrent(const TrialRecord& record) const;
  // Drops an unpinned checkpoint of an ended sweep if nothing else keeps it. Advance does not do
  // this for ended sweeps.
  Status DropUnlessKept(const CheckpointId& id);

  const State& state_;
  const Time now_;
  Facts facts_;
};

}  // namespace attune

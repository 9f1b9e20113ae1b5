#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/result.h"
#include "core/log/event.h"
#include "server/store/event_log.h"
#include "server/store/sqlite.h"
#include "server/store/tables/progress.h"

namespace attune::server {

// Keeps the tables for people (docs/reference/database.md): sweeps, trials, attempts, decisions,
// checkpoints, executors, and indices of measured values. All their contents derive from the log.
// The transaction that appends a batch of events also changes the tables, and table_build.h
// rebuilds them from the log.
//
// Errors stay in the transaction.
class Projection {
 public:
  enum class ErrorMode {
    kStop,  // an event that the tables cannot take is an error
    kSkip,  // such an event is left out and noted in `unshown`; slower
  };

  // Applies events that are already in the log: all events after `after` up to `last` that were not
  // erased. A few rows of trials that report may stay behind (progress.h).
  void Apply(sqlite::Transaction& transaction, std::span<const Event> batch, EventSeq after,
             EventSeq last, ErrorMode mode);

  // Whether an error concerns only the tables, so that the log can continue without them.
  static bool IsTableError(const Error& error);

  // Update some or all rows that are behind. `last`: the newest event of the log.
  bool IsBehind() const { return progress_.HasWork(); }
  void WriteSome(sqlite::Transaction& transaction, EventSeq last);
  void WriteAll(sqlite::Transaction& transaction, EventSeq last);

  // Sets whether it rebuilds the tables. The next start then does not retry events that the tables
  // could not take.
  void SetRebuilding(bool rebuilding) { rebuilding_ = rebuilding; }

  // Finds the rows that an earlier process has left behind the log, and remembers their reports up
  // to `last`.
  void CatchUp(sqlite::Transaction& transaction, EventSeq last, ErrorMode mode);

  // Forgets all rows; needed after a rollback.
  void Forget();

 private:
  void Change(sqlite::Transaction& transaction, const Event& event);
  void Show(sqlite::Transaction& transaction, EventSeq seq, const std::function<void()>& change);
  void WriteRows(sqlite::Transaction& transaction, EventSeq last, size_t rows, ErrorMode mode);

  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepCreated& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepPaused& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepResumed& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepEdited& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepReopened& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepStopping& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepEnded& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepAnnotated& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SweepDeleted& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialCreated& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialReopened& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const AttemptAssigned& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const AttemptStarted& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const AttemptFirstStep& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialReported& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const MetricsLogged& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialDecided& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialPromoted& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const CheckpointSaved& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const CheckpointPinned& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const CheckpointDropped& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const CheckpointRemoved& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const CheckpointStored& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const AttemptEnded& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialRequeued& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialAnnotated& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const TrialEnded& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const SlotsReserved& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event,
              const ReservationReleased& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ExecutorJoined& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ExecutorLost& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ExecutorDrained& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ExecutorResumed& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ExecutorHealth& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event,
              const ExecutorQuarantined& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event,
              const ExecutorQuarantineEnded& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event,
              const EnvironmentRecorded& fact);
  void Handle(sqlite::Transaction& transaction, const Event& event, const ClockAdjusted& fact);

  // Converts a time of the log to the time that people see.
  Time DisplayTime(Time time) const { return Time{time.us + clock_offset_us_}; }

  std::set<std::string, std::less<>>& LoggedMetricsOf(sqlite::Transaction& transaction,
                                                      SweepId sweep);
  void IndexCurves(sqlite::Transaction& transaction, EventSeq after, EventSeq last);

  Progress progress_;
  // names of logged metrics that have a row
  std::map<SweepId, std::set<std::string, std::less<>>> logged_;
  int64_t clock_offset_us_ = 0;
  bool caught_up_ = false;
  bool rebuilding_ = false;
};

}  // namespace attune::server

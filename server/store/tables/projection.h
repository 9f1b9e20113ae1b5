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

// The tables for people (docs/reference/database.md): sweeps, trials, attempts, decisions,
// checkpoints and executors, and the indices of what is measured. They say nothing that the log
// does not: each batch of events changes them in the transaction that appends it, and table_build.h
// rebuilds them from the log.
//
// Errors stay in the transaction.
class Projection {
 public:
  enum class Care {
    kNone,  // an event that the tables cannot take is an error
    kEach,  // it is left out and noted in `unshown`; slower
  };

  // What the events change. They are in the log already: all those after `after` up to `last` that
  // were not erased. A few rows of trials that report may stay behind (progress.h).
  void Apply(sqlite::Transaction& transaction, std::span<const Event> batch, EventSeq after,
             EventSeq last, Care care);

  // Whether an error is the tables' alone, so that the log can do without them.
  static bool OfTables(const Error& error);

  // Brings some of what is behind up to date, or all of it. `last`: the newest event of the log.
  bool Behind() const { return progress_.Waiting(); }
  void WriteSome(sqlite::Transaction& transaction, EventSeq last);
  void WriteAll(sqlite::Transaction& transaction, EventSeq last);

  // Whether it rebuilds the tables. An event that these cannot take is then not tried again by the
  // next start.
  void SetRebuilding(bool rebuilding) { rebuilding_ = rebuilding; }

  // Learns from the file what rows are behind the log up to `last`, where an earlier process has
  // left some.
  void CatchUp(sqlite::Transaction& transaction, EventSeq last, Care care);

  // Forgets what it remembers of rows; needed after a rollback.
  void Forget();

 private:
  void Change(sqlite::Transaction& transaction, const Event& event);
  void Show(sqlite::Transaction& transaction, EventSeq seq, const std::function<void()>& change);
  void WriteRows(sqlite::Transaction& transaction, EventSeq last, size_t rows, Care care);

  void On(sqlite::Transaction& transaction, const Event& event, const SweepCreated& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepPaused& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepResumed& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepEdited& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepReopened& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepStopping& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepDeleted& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialCreated& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialReopened& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptAssigned& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptStarted& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptFirstStep& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialReported& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const MetricsLogged& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialDecided& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialPromoted& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const CheckpointSaved& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const CheckpointPinned& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const CheckpointDropped& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const CheckpointRemoved& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialRequeued& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SlotsReserved& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ReservationReleased& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorJoined& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorLost& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorDrained& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorResumed& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorHealth& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorQuarantined& fact);
  void On(sqlite::Transaction& transaction, const Event& event,
          const ExecutorQuarantineEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ClockAdjusted& fact);

  // A time of the log as people see it.
  Time Shown(Time time) const { return Time{time.us + clock_offset_us_}; }

  std::set<std::string, std::less<>>& LoggedMetricsOf(sqlite::Transaction& transaction,
                                                      SweepId sweep);
  void IndexCurves(sqlite::Transaction& transaction, EventSeq after, EventSeq last);

  Progress progress_;
  std::map<SweepId, std::set<std::string, std::less<>>> logged_;  // names that have a row
  int64_t clock_offset_us_ = 0;
  bool caught_up_ = false;
  bool rebuilding_ = false;
};

}  // namespace attune::server

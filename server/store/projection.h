#pragma once

#include <span>

#include "core/event.h"
#include "server/store/progress.h"
#include "server/store/sqlite.h"

namespace attune::server {

// The tables for people (docs/database.md): sweeps, trials, attempts, decisions, checkpoints and
// executors, and the index of reports. They say nothing that the log does not: each batch of events
// changes them in the transaction that appends it, and Rebuild makes them from the log alone.
//
// Errors stay in the transaction.
class Projection {
 public:
  // What the events change. They are in the log already, and come in its order.
  void Apply(sqlite::Transaction& transaction, std::span<const Event> batch);

  // Drops the tables and makes them from the whole log.
  void Rebuild(sqlite::Transaction& transaction);

  // Forgets what it remembers of rows; needed after a rollback.
  void Forget() { progress_.ForgetAll(); }

 private:
  void On(sqlite::Transaction& transaction, const Event& event, const SweepCreated& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepStopping& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SweepEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const SearchExhausted& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialCreated& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptAssigned& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptStarted& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptFirstStep& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialReported& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialDecided& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const CheckpointSaved& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const AttemptEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialRequeued& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const TrialEnded& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorJoined& fact);
  void On(sqlite::Transaction& transaction, const Event& event, const ExecutorLost& fact);

  void IndexReports(sqlite::Transaction& transaction, EventSeq first, EventSeq last);

  Progress progress_;
};

// An index that grows with every report would touch a page a trial in each batch. This one grows by
// so many events at once, in order of trials; what came after is few enough to look through.
inline constexpr uint64_t kReportIndexEvery = 16'384;

}  // namespace attune::server

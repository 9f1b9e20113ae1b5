#pragma once

#include <map>

#include "core/event.h"
#include "server/store/sqlite.h"

namespace attune::server {

// The tables for people (docs/database.md): sweeps, trials, attempts, decisions, checkpoints and
// executors. They say nothing that the log does not: each event changes them in the transaction
// that appends it, and Rebuild makes them from the log alone.
//
// Errors stay in the transaction.
class Projection {
 public:
  // The columns that one event changes. Events come in the order of the log.
  void Apply(sqlite::Transaction& transaction, const Event& event);

  // Drops the tables and makes them from the whole log.
  void Rebuild(sqlite::Transaction& transaction);

  // Forgets what it remembers of rows; needed after a rollback.
  void Forget() { objectives_.clear(); }

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

  const Objective& ObjectiveOf(sqlite::Transaction& transaction, SweepId sweep);

  std::map<SweepId, Objective> objectives_;  // of sweeps that report; asked for at every report
};

}  // namespace attune::server

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "server/store/sqlite.h"

namespace attune::server {

// The columns of `trials` that follow its reports: step, seconds, metrics and the best so far. Of
// the reports of a trial in one batch only the last and the best reach its row.
//
// Errors stay in the transaction.
class Progress {
 public:
  // The fact outlives the next Write.
  void Add(sqlite::Transaction& transaction, const TrialReported& fact);

  // Brings the row of one trial, or of all, up to date.
  void Write(sqlite::Transaction& transaction, const TrialId& trial);
  void WriteAll(sqlite::Transaction& transaction);

  // Forgets what it remembers of a trial, once written, or of all rows, after a rollback.
  void Forget(const TrialId& trial) { trials_.erase(trial); }
  void ForgetAll();

 private:
  struct Entry {
    const Report* last = nullptr;         // not written yet
    const Report* best_report = nullptr;  // not written yet
    std::optional<double> best;
  };

  Entry& EntryOf(sqlite::Transaction& transaction, const TrialId& trial);
  const Objective& ObjectiveOf(sqlite::Transaction& transaction, SweepId sweep);
  void Write(sqlite::Transaction& transaction, const TrialId& trial, Entry& entry);

  std::map<SweepId, Objective> objectives_;  // of sweeps that report
  std::map<TrialId, Entry> trials_;          // with a live attempt
  std::vector<TrialId> changed_;             // some may have been written since
  std::string metrics_, best_metrics_;       // reused
};

}  // namespace attune::server

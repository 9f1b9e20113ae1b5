#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/log/event.h"
#include "server/store/sqlite.h"
#include "server/store/tables/front_table.h"

namespace attune::server {

// With a batch of events, this many rows of `trials` are updated, or one for each
// kEventsPerProgressRow events if that is more. If more trials have reported, the other rows wait
// for later batches, in order of trials. Neighbouring rows share a page, so each page is written
// once for all its changes. A row is at most about 16 reports of each trial behind.
inline constexpr size_t kProgressRows = 64;
inline constexpr size_t kEventsPerProgressRow = 16;

// Updates the columns of `trials` that follow the reports: step, seconds, metrics and the best so
// far. Also keeps the front of each sweep, which is never behind. For reports that are not in their
// row yet, it remembers the seq. The table `behind` says from which event on a new process must
// read the log again.
//
// Errors stay in the transaction.
class Progress {
 public:
  // Adds a report that is in the log.
  void Add(sqlite::Transaction& transaction, EventSeq seq, const TrialReported& fact);

  // Updates the row of one trial.
  void Write(sqlite::Transaction& transaction, const TrialId& trial);

  // Updates at most `rows` rows by calling `write` for each, and writes the table `behind`. `last`
  // is the newest event of the log.
  using WriteRow = std::function<void(const TrialId&)>;
  void WriteSome(sqlite::Transaction& transaction, EventSeq last, size_t rows,
                 const WriteRow& write);

  // Writes the fronts.
  void WriteFronts(sqlite::Transaction& transaction) { front_.Write(transaction); }

  bool HasWork() const { return place_ < round_.size() || !changed_.empty(); }

  // Starts after ForgetAll: all rows are up to date up to `seq`. `behind`: the table `behind` has a
  // row.
  void Begin(EventSeq seq, bool behind);

  // Forget a trial whose row is written, or all rows after a rollback.
  void Forget(const TrialId& trial) { trials_.erase(trial); }
  void ForgetAll();

  // Forgets the objectives and the front of a sweep. The front must be written, or must not be
  // written any more. A later report reads both again.
  void Forget(SweepId sweep);

 private:
  struct Entry {
    EventSeq last{0};         // the last report that is not in the row yet; 0: none
    EventSeq best_report{0};  // likewise for the best report
    std::optional<double> best;
    bool listed = false;  // whether the trial is in round_ or changed_
  };
  struct Hash {
    size_t operator()(const TrialId& id) const {
      return std::hash<uint64_t>()(id.sweep.value * 0x9e3779b97f4a7c15 + id.number.value);
    }
  };

  Entry& EntryOf(sqlite::Transaction& transaction, const TrialId& trial);
  // The values by which a sweep's reports are judged.
  struct Goals {
    std::vector<Objective> objectives;
    std::vector<Constraint> constraints;
  };
  // Null: what the table says cannot be read.
  const Goals* GoalsOf(sqlite::Transaction& transaction, SweepId sweep);
  void WriteRowOf(sqlite::Transaction& transaction, const TrialId& trial, Entry& entry);
  bool NextRound(EventSeq last);

  std::map<SweepId, Goals> goals_;                   // of sweeps that report
  std::unordered_map<TrialId, Entry, Hash> trials_;  // trials with a live attempt
  std::vector<TrialId> changed_;                     // trials that reported since the round began
  std::vector<TrialId> round_;                       // trials to write in this round, in order
  size_t place_ = 0;                                 // position in round_
  EventSeq round_began_{0};                          // the newest event at the begin of the round
  EventSeq clean_{0};                                // all rows are up to date up to this event
  bool behind_ = false;                              // whether the table `behind` has a row
  EventSeq said_{0};                                 // the value of that row
  std::string metrics_, best_metrics_;               // reused
  FrontTable front_;
};

}  // namespace attune::server

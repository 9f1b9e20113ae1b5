#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/log/event.h"
#include "server/store/tables/front_table.h"
#include "server/store/sqlite.h"

namespace attune::server {

// So many rows of `trials` are brought up to date with a batch of events, or one for so many of its
// events, if that is more. Where more trials have reported, the rest waits for the batches after
// it, in order of trials: neighbours share a page, and a page is written once for all that happened
// to it. So a row is behind by some sixteen reports of each trial at most.
inline constexpr size_t kProgressRows = 64;
inline constexpr size_t kEventsPerProgressRow = 16;

// The columns of `trials` that follow its reports: step, seconds, metrics and the best so far; and
// the front of each sweep, which is never behind. What
// is not in its row yet is known by its place in the log, and the table `behind` says from where on
// the log is to be read again when the process has ended before.
//
// Errors stay in the transaction.
class Progress {
 public:
  // A report that is in the log.
  void Add(sqlite::Transaction& transaction, EventSeq seq, const TrialReported& fact);

  // Brings the row of one trial up to date.
  void Write(sqlite::Transaction& transaction, const TrialId& trial);

  // Brings at most `rows` rows up to date, with `write` for each, and says in `behind` what that
  // leaves. `last` is the newest event of the log.
  using WriteRow = std::function<void(const TrialId&)>;
  void WriteSome(sqlite::Transaction& transaction, EventSeq last, size_t rows,
                 const WriteRow& write);

  // Brings the fronts up to date.
  void WriteFronts(sqlite::Transaction& transaction) { front_.Write(transaction); }

  bool Waiting() const { return place_ < round_.size() || !changed_.empty(); }

  // Nothing before `seq` is missing in a row that is not known here. For after ForgetAll.
  void Begin(EventSeq seq, bool behind);

  // Forgets what it remembers of a trial, once written, or of all rows, after a rollback.
  void Forget(const TrialId& trial) { trials_.erase(trial); }
  void ForgetAll();

  // Forgets what a sweep's reports are judged by and its front, which is written, or is not to be
  // written any more. A later report reads both again.
  void Forget(SweepId sweep);

 private:
  struct Entry {
    EventSeq last{0};         // not in the row yet; 0: there is none
    EventSeq best_report{0};  // the same
    std::optional<double> best;
    bool listed = false;  // in round_ or changed_
  };
  struct Hash {
    size_t operator()(const TrialId& id) const {
      return std::hash<uint64_t>()(id.sweep.value * 0x9e3779b97f4a7c15 + id.number.value);
    }
  };

  Entry& EntryOf(sqlite::Transaction& transaction, const TrialId& trial);
  // What a sweep's reports are judged by.
  struct Goals {
    std::vector<Objective> objectives;
    std::vector<Constraint> constraints;
  };
  // Null: what the table says cannot be read.
  const Goals* GoalsOf(sqlite::Transaction& transaction, SweepId sweep);
  void WriteRowOf(sqlite::Transaction& transaction, const TrialId& trial, Entry& entry);
  bool NextRound(EventSeq last);

  std::map<SweepId, Goals> goals_;                   // of sweeps that report
  std::unordered_map<TrialId, Entry, Hash> trials_;  // with a live attempt
  std::vector<TrialId> changed_;                     // since the round began
  std::vector<TrialId> round_;                       // what the round writes, in order
  size_t place_ = 0;                                 // in it
  EventSeq round_began_{0};                          // the newest event then
  EventSeq clean_{0};                                // all rows know the log up to here
  bool behind_ = false;                              // whether the table says so
  EventSeq said_{0};                                 // and what it says
  std::string metrics_, best_metrics_;               // reused
  FrontTable front_;
};

}  // namespace attune::server

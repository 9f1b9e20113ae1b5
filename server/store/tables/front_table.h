#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/space/front.h"
#include "server/store/sqlite.h"

namespace attune::server {

// Keeps the rows of `front`: the best reports of each sweep (core/space/front.h). Only reports that
// are still on the front at the end of a batch are read from the log again and written to the
// table.
//
// Errors stay in the transaction.
class FrontTable {
 public:
  // Adds a report of the log that counts, with the values of the sweep's objectives. A report that
  // is already there changes nothing.
  void Offer(sqlite::Transaction& transaction, const std::vector<Objective>& objectives,
             EventSeq seq, const TrialReported& fact, std::vector<double> values);

  void Write(sqlite::Transaction& transaction);

  // REQUIRES: the sweep's front is written, or must not be written any more.
  void Forget(SweepId sweep) { fronts_.erase(sweep); }

  // Call it after a rollback.
  void Forget() { fronts_.clear(); }

 private:
  // Reports are identified by trial, attempt and step.
  struct Entry {
    Front now;
    Front written;
    std::map<CheckpointId, EventSeq> fresh;  // reports that joined since the last Write
    bool changed = false;
  };

  // Null if the table cannot be read.
  Entry* EntryOf(sqlite::Transaction& transaction, size_t objectives, SweepId sweep);
  static void Write(sqlite::Transaction& transaction, SweepId sweep, Entry& entry);

  std::map<SweepId, Entry> fronts_;  // of sweeps that report
};

}  // namespace attune::server

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/space/front.h"
#include "server/store/sqlite.h"

namespace attune::server {

// The rows of `front`: of each sweep the reports that are its best now (core/space/front.h). Of the
// reports of one batch only those that are still on the front at its end are read again from the
// log, and reach the table.
//
// Errors stay in the transaction.
class FrontTable {
 public:
  // A report of the log that counts, with the values of the sweep's objectives. One that is there
  // already changes nothing.
  void Offer(sqlite::Transaction& transaction, const std::vector<Objective>& objectives,
             EventSeq seq, const TrialReported& fact, std::vector<double> values);

  void Write(sqlite::Transaction& transaction);

  // REQUIRES: it is written, or is not to be written any more.
  void Forget(SweepId sweep) { fronts_.erase(sweep); }

  // After a rollback.
  void Forget() { fronts_.clear(); }

 private:
  // A report's place in a front is known by its trial, attempt and step.
  struct Entry {
    Front now;
    Front written;
    std::map<CheckpointId, EventSeq> fresh;  // on the front since the last Write
    bool changed = false;
  };

  // Null: what the table says cannot be read.
  Entry* EntryOf(sqlite::Transaction& transaction, size_t objectives, SweepId sweep);
  static void Write(sqlite::Transaction& transaction, SweepId sweep, Entry& entry);

  std::map<SweepId, Entry> fronts_;  // of sweeps that report
};

}  // namespace attune::server

#pragma once

#include <memory>

#include "server/store/event_store.h"

namespace attune::sim {

// Where the log lies, on a disk that can be full.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual server::EventStore& store() = 0;
  virtual void SetFull(bool full) = 0;
  virtual void Restore(EventSeq last) = 0;  // the log ends with this event again
};

std::unique_ptr<Disk> MakeMemoryDisk();
std::unique_ptr<Disk> MakeSqliteDisk();  // in a folder of its own, which goes with it

}  // namespace attune::sim

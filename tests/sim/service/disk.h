#pragma once

#include <memory>
#include <span>

#include "server/store/event_store.h"

namespace attune::sim {

// Where the log lies, on a disk that can be full.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual server::EventStore& store() = 0;
  virtual void SetFull(bool full) = 0;
  // Replaces the log by a backup that has these events, also those of sweeps that were deleted and
  // erased since.
  virtual void Restore(std::span<const Event> log) = 0;
};

std::unique_ptr<Disk> MakeMemoryDisk();
std::unique_ptr<Disk> MakeSqliteDisk();  // in a folder of its own, which goes with it

}  // namespace attune::sim

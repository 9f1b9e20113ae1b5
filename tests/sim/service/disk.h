#pragma once

#include <memory>
#include <span>

#include "server/store/event_store.h"

namespace attune::sim {

// The disk with the log. It can be full.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual server::EventStore& store() = 0;
  virtual void SetFull(bool full) = 0;
  // Replaces the log by a backup with these events. The backup has all events of sweeps that were
  // deleted after it was made.
  virtual void Restore(std::span<const Event> log) = 0;
};

std::unique_ptr<Disk> MakeMemoryDisk();
std::unique_ptr<Disk> MakeSqliteDisk();  // in a temporary folder

}  // namespace attune::sim

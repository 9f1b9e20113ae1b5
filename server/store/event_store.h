#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/event.h"
#include "core/result.h"

namespace attune::server {

// The append-only log of events: the truth that everything else is derived from.
//
// Append and Probe are called by one thread, the conductor's.
class EventStore {
 public:
  virtual ~EventStore() = default;

  // Makes the whole batch durable or nothing of it. The events' seq must follow the last appended
  // one without a gap. kStorageFull when there is no space; then nothing was changed.
  virtual Status Append(std::span<const Event> batch) = 0;

  // Calls `visit` with every event of seq > after, in order.
  virtual Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const = 0;

  // Whether a write would succeed now; leaves no trace.
  virtual Status Probe() = 0;
};

}  // namespace attune::server

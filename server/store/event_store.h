#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"
#include "core/state/ended.h"

namespace attune::server {

// The state after an event. `bytes` is opaque to the store. `ended` are the parts of ended sweeps;
// the store keeps each part once, however many snapshots name it.
struct Snapshot {
  EventSeq seq;
  std::string bytes;
  std::vector<EndedSweepData> ended;
};

// The append-only log of events, from which all other data derives.
//
// Only the conductor's thread calls it.
class EventStore {
 public:
  virtual ~EventStore() = default;

  // Makes the whole batch durable or nothing of it. The seq of the first event must follow the last
  // appended event without a gap. kStorageFull: there is no space, and nothing was changed.
  // kUnsynced: the state of the disk is unknown; the process must end, and the next start reads it.
  virtual Status Append(std::span<const Event> batch) = 0;

  // Like Append, but also uses the space that is reserved for kills and ends. It may succeed after
  // Append has failed with kStorageFull.
  virtual Status AppendFromReserve(std::span<const Event> batch) = 0;

  // Calls `visit` in order with every event of seq > `after` that was not erased.
  virtual Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const = 0;

  // Saves a snapshot. The newest two snapshots are kept, with all ended parts that they name.
  // Snapshots are a cache: an error does not affect the log. REQUIRES: snapshot.seq is the last
  // appended event, and each ended part without bytes is already stored.
  virtual Status SaveSnapshot(const Snapshot& snapshot) = 0;

  // Returns the newest snapshot of seq <= at_most that is not ahead of the log, with the names of
  // all stored ended parts. Nullopt if there is none.
  virtual Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const = 0;

  // Reads the bytes of an ended part. kNotFound if it is not stored.
  virtual Result<std::string> ReadEnded(const EndedSweepData& part) const = 0;

  // Returns whether a write would succeed now. Changes nothing.
  virtual Status Probe() = 0;

  // The last appended event, where Read will end. 0 if unknown.
  virtual EventSeq LastSeq() const { return EventSeq(0); }

  // Does a small part of the background work; call it when idle. Returns whether work is left.
  virtual bool DoBackgroundWork() { return false; }

  // Whether DoBackgroundWork waits for a snapshot. Events of deleted sweeps are erased only after a
  // snapshot that does not need them.
  virtual bool NeedsSnapshot() const { return false; }
};

}  // namespace attune::server

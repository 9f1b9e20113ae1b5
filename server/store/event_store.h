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

// What the log up to an event leads to, as bytes that only who wrote them understands, and what is
// left of the sweeps that had ended, each once whatever the number of snapshots.
struct Snapshot {
  EventSeq seq;
  std::string bytes;
  std::vector<EndedPart> ended;
};

// The append-only log of events: the truth that everything else is derived from.
//
// All is called by one thread, the conductor's.
class EventStore {
 public:
  virtual ~EventStore() = default;

  // Makes the whole batch durable or nothing of it. The events' seq must follow the last appended
  // one without a gap. kStorageFull when there is no space; then nothing was changed. kUnsynced
  // when it is not known what is on the disk: the process must end, and its next start looks.
  virtual Status Append(std::span<const Event> batch) = 0;

  // The same, with the space that is kept back for kills and ends: it may succeed after Append has
  // failed with kStorageFull.
  virtual Status AppendFromReserve(std::span<const Event> batch) = 0;

  // Calls `visit` with every event of seq > after that was not erased, in order.
  virtual Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const = 0;

  // Keeps it beside the log; of all snapshots the newest two stay, and of what is left of ended
  // sweeps all that they name. It is a cache: an error changes nothing of the log. REQUIRES: seq is
  // that of the last appended event; an ended part without bytes is one that is kept.
  virtual Status SaveSnapshot(const Snapshot& snapshot) = 0;

  // The newest snapshot of seq <= at_most that is not ahead of the log, with the names of all that
  // is kept of ended sweeps; nullopt when there is none.
  virtual Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const = 0;

  // The bytes of one of those. kNotFound.
  virtual Result<std::string> ReadEnded(const EndedPart& part) const = 0;

  // Whether a write would succeed now; leaves no trace.
  virtual Status Probe() = 0;

  // The last appended event: how far Read will come. 0 where that is not known.
  virtual EventSeq LastSeq() const { return EventSeq(0); }

  // A little of the work that can wait, for when there is nothing else to do; whether some is left.
  virtual bool DoBackgroundWork() { return false; }

  // Whether DoBackgroundWork waits for a snapshot: events of deleted sweeps are erased once a
  // snapshot is there that does not need them.
  virtual bool NeedsSnapshot() const { return false; }
};

}  // namespace attune::server

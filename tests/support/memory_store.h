#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "server/store/event_store.h"

namespace attune::testing {

// An event store in memory whose disk can be full.
class MemoryStore final : public server::EventStore {
 public:
  Status Append(std::span<const Event> batch) override {
    if (full) return *full;
    for (const Event& event : batch) {
      ATTUNE_CHECK(event.seq.value == events.size() + 1);
      events.push_back(event);
    }
    ++commits;
    return {};
  }
  EventSeq LastSeq() const override { return EventSeq(events.size()); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    read_after.push_back(after);
    for (const Event& event : events) {
      if (event.seq > after) visit(event);
    }
    return {};
  }
  Status SaveSnapshot(EventSeq seq, std::string_view bytes) override {
    if (full) return *full;
    snapshots[seq] = bytes;
    if (snapshots.size() > 2) snapshots.erase(snapshots.begin());
    return {};
  }
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    const EventSeq last(std::min<uint64_t>(at_most.value, events.size()));
    const auto after = snapshots.upper_bound(last);
    if (after == snapshots.begin()) return std::optional<server::Snapshot>();
    const auto& [seq, bytes] = *std::prev(after);
    return std::optional(server::Snapshot{seq, bytes});
  }
  Status Probe() override {
    if (full) return *full;
    return {};
  }

  std::vector<Event> events;
  std::map<EventSeq, std::string> snapshots;
  mutable std::vector<EventSeq> read_after;  // where each Read began
  int commits = 0;
  std::optional<Error> full;
};

}  // namespace attune::testing

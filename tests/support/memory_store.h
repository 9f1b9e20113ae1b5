#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
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
  Status SaveSnapshot(const server::Snapshot& snapshot) override {
    if (full) return *full;
    snapshots[snapshot.seq] = snapshot.bytes;
    if (snapshots.size() > 2) snapshots.erase(snapshots.begin());
    named[snapshot.seq].clear();
    for (const EndedPart& part : snapshot.ended) {
      named[snapshot.seq].insert({part.sweep, part.mark});
      if (!part.bytes.empty()) ended[{part.sweep, part.mark}] = part.bytes;
    }
    std::erase_if(ended, [&](const auto& kept) {
      return std::ranges::none_of(
          snapshots, [&](const auto& one) { return named[one.first].contains(kept.first); });
    });
    return {};
  }
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    const EventSeq last(std::min<uint64_t>(at_most.value, events.size()));
    const auto after = snapshots.upper_bound(last);
    if (after == snapshots.begin()) return std::optional<server::Snapshot>();
    const auto& [seq, bytes] = *std::prev(after);
    std::vector<EndedPart> kept;
    for (const auto& [name, part] : ended) kept.push_back({name.first, name.second, ""});
    return std::optional(server::Snapshot{seq, bytes, std::move(kept)});
  }
  Result<std::string> ReadEnded(const EndedPart& part) const override {
    const auto found = ended.find({part.sweep, part.mark});
    if (found == ended.end()) return Error{ErrorCode::kNotFound, "not kept"};
    return found->second;
  }
  Status Probe() override {
    if (full) return *full;
    return {};
  }

  std::vector<Event> events;
  std::map<EventSeq, std::string> snapshots;
  using Name = std::pair<SweepId, uint64_t>;
  std::map<Name, std::string> ended;
  std::map<EventSeq, std::set<Name>> named;  // by a snapshot
  mutable std::vector<EventSeq> read_after;  // where each Read began
  int commits = 0;
  std::optional<Error> full;
};

}  // namespace attune::testing

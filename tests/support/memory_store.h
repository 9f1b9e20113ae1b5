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
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "server/store/event_store.h"

namespace attune::testing {

// An event store in memory whose disk can be full. DoBackgroundWork erases a few events of deleted
// sweeps.
class MemoryStore final : public server::EventStore {
 public:
  Status Append(std::span<const Event> batch) override {
    if (full) return *full;
    for (const Event& event : batch) {
      ATTUNE_CHECK(event.seq.value == LastSeq().value + 1);
      events.push_back(event);
      const auto* deleted = std::get_if<SweepDeleted>(&event.fact);
      if (deleted != nullptr && deleted->shared)
        erasures[deleted->sweep] = {.last = EventSeq(event.seq.value - 1)};
    }
    ++commits;
    return {};
  }
  Status AppendFromReserve(std::span<const Event> batch) override {
    if (!full) return Append(batch);
    if (batch.size() > reserve) return *full;
    reserve -= batch.size();
    const auto why = std::exchange(full, std::nullopt);
    const Status written = Append(batch);
    full = why;
    return written;
  }
  EventSeq LastSeq() const override { return events.empty() ? EventSeq(0) : events.back().seq; }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    read_after.push_back(after);
    for (const Event& event : events) {
      if (event.seq > after && !IsErased(event)) visit(event);
    }
    return {};
  }
  bool NeedsSnapshot() const override {
    return std::ranges::any_of(erasures, [](const auto& each) { return !each.second.begun; });
  }
  bool DoBackgroundWork() override {
    if (full) return false;
    size_t left = kErasedInSlice;
    std::erase_if(events,
                  [&](const Event& event) { return left > 0 && IsErased(event) && left-- > 0; });
    if (left > 0) std::erase_if(erasures, [](const auto& each) { return each.second.begun; });
    return left == 0;
  }
  Status SaveSnapshot(const server::Snapshot& snapshot) override {
    if (full) return *full;
    for (auto& [sweep, erasure] : erasures) {
      if (erasure.begun) continue;
      erasure.begun = true;
      snapshots.erase(snapshots.begin(), snapshots.upper_bound(erasure.last));
    }
    snapshots[snapshot.seq] = snapshot.bytes;
    if (snapshots.size() > 2) snapshots.erase(snapshots.begin());
    named[snapshot.seq].clear();
    for (const EndedSweepData& part : snapshot.ended) {
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
    const EventSeq last = std::min(at_most, LastSeq());
    const auto after = snapshots.upper_bound(last);
    if (after == snapshots.begin()) return std::optional<server::Snapshot>();
    const auto& [seq, bytes] = *std::prev(after);
    std::vector<EndedSweepData> kept;
    for (const auto& [name, part] : ended) kept.push_back({name.first, name.second, ""});
    return std::optional(server::Snapshot{seq, bytes, std::move(kept)});
  }
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    const auto found = ended.find({part.sweep, part.mark});
    if (found == ended.end()) return Error{ErrorCode::kNotFound, "not kept"};
    return found->second;
  }
  Status Probe() override {
    if (full) return *full;
    return {};
  }

  // Returns deleted sweeps whose events up to `last` must be erased. After the erasure has started,
  // they count as erased.
  struct Erasure {
    EventSeq last{0};
    bool begun = false;
  };
  bool IsErased(const Event& event) const {
    const auto sweep = SweepOf(event.fact);
    const auto erasure = sweep ? erasures.find(*sweep) : erasures.end();
    return erasure != erasures.end() && erasure->second.begun && event.seq <= erasure->second.last;
  }
  static constexpr size_t kErasedInSlice = 16;

  std::vector<Event> events;
  std::map<SweepId, Erasure> erasures;
  std::map<EventSeq, std::string> snapshots;
  using Name = std::pair<SweepId, uint64_t>;
  std::map<Name, std::string> ended;
  std::map<EventSeq, std::set<Name>> named;  // parts that each snapshot refers to
  mutable std::vector<EventSeq> read_after;  // start of each Read
  int commits = 0;
  std::optional<Error> full;
  size_t reserve = 0;  // number of events that it still accepts when it is full
};

}  // namespace attune::testing

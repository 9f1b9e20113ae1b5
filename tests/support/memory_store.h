#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/check.h"
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
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    for (const Event& event : events) {
      if (event.seq > after) visit(event);
    }
    return {};
  }
  Status Probe() override {
    if (full) return *full;
    return {};
  }

  std::vector<Event> events;
  int commits = 0;
  std::optional<Error> full;
};

}  // namespace attune::testing

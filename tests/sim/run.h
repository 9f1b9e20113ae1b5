#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "tests/sim/variant.h"

namespace attune::sim {

struct Outcome {
  std::optional<std::string> finding;  // nullopt if no rule was broken
  std::vector<Event> log;
  double virtual_seconds = 0;
};

// Runs the world of this seed and checks its log afterwards.
Outcome RunSeed(uint64_t seed, Variant variant);

// The log of the current run, for a report after an abort; null if no run is active.
const std::vector<Event>* CurrentLog();

}  // namespace attune::sim

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "tests/sim/variant.h"

namespace attune::sim {

struct Outcome {
  std::optional<std::string> finding;  // what is wrong; nullopt: nothing
  std::vector<Event> log;
  double virtual_seconds = 0;
};

// The world of this seed, and what its log is worth afterwards.
Outcome RunSeed(uint64_t seed, Variant variant);

// Of the run that is under way, for whoever has to say where it broke off.
const std::vector<Event>* LogUnderWay();

}  // namespace attune::sim

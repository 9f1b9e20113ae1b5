#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"

namespace attune::conformance {

constexpr uint64_t kRounds = 12;  // random cases in each test

// The first seed of a run. Round r uses BaseSeed() + r.
inline uint64_t BaseSeed() {
  const char* text = std::getenv("ATTUNE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

inline std::string SeedNote(uint64_t seed) {
  return "repeat with ATTUNE_SEED=" + std::to_string(seed);
}

// An algorithm with the default of every option, as the sweep file fills them in.
inline AlgorithmSpec WithFallbacks(const std::string& name, const std::vector<Option>& options) {
  AlgorithmSpec spec{.name = name};
  for (const Option& option : options) spec.options.emplace(option.name, option.fallback);
  return spec;
}

}  // namespace attune::conformance

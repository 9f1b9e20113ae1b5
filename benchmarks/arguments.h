#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/parse_number.h"

namespace attune::benchmarks {

// Prints the usage and ends the program with 2.
[[noreturn]] inline void EndWithUsage(const char* usage) {
  std::fprintf(stderr, "usage: %s\n", usage);
  std::exit(2);
}

// The argument at `index`, a whole number of at least 1. `fallback` if there are fewer arguments.
// Any other text ends the program with its usage.
inline int CountArgument(int argc, char** argv, int index, int fallback, const char* usage) {
  if (index >= argc) return fallback;
  const std::optional<int> count = ParseNumber<int>(argv[index]);
  if (!count || *count < 1) EndWithUsage(usage);
  return *count;
}

}  // namespace attune::benchmarks

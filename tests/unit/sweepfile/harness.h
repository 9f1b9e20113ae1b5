#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cli/algorithms.h"
#include "sweepfile/sweepfile.h"
#include "tests/unit/sweepfile/reference.h"

namespace attune::sweepfile {

using cli::AllAlgorithms;

inline ParseOptions Options() {
  return {.file = "sweep.yaml", .directory = "/home/ada/mnist", .algorithms = &AllAlgorithms()};
}

inline Parsed Parse(std::string_view text) { return ParseSweep(text, Options()); }

// All faults as a user sees them, one line each.
inline std::string FaultLines(const Parsed& parsed) {
  std::string text;
  for (const Fault& fault : parsed.faults) text += FormatFault("sweep.yaml", fault) + "\n";
  return text;
}

// A valid file of four lines, followed by `lines`.
inline std::string With(std::string_view lines) {
  return "command: [train]\n"
         "metric: {name: loss, mode: min}\n"
         "stop: {max_trials: 4}\n"
         "parameters: {lr: {min: 0.1, max: 1.0}}\n" +
         std::string(lines);
}

// A valid file with `lines` as its parameters; they begin in line 5.
inline std::string WithParameters(std::string_view lines) {
  return "command: [train]\n"
         "metric: {name: loss, mode: min}\n"
         "stop: {max_trials: 4}\n"
         "parameters:\n" +
         std::string(lines);
}

// The spec of a file. The file must be valid.
inline SweepSpec Spec(std::string_view text) {
  Parsed parsed = Parse(text);
  EXPECT_EQ(FaultLines(parsed), "") << text;
  return parsed.spec ? *std::move(parsed.spec) : SweepSpec{};
}

inline std::string FaultsOf(std::string_view text) {
  const Parsed parsed = Parse(text);
  EXPECT_FALSE(parsed.spec.has_value()) << text;
  return FaultLines(parsed);
}

}  // namespace attune::sweepfile

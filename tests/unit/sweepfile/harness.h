#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/algorithms.h"
#include "sweepfile/sweepfile.h"
#include "tests/support/golden.h"
#include "tests/unit/sweepfile/reference.h"

namespace attune::sweepfile {

using attune::testing::ExpectGolden;
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

// The places of the faults, one line each: "2:1 metrics".
inline std::string PlaceLines(const Parsed& parsed) {
  std::string text;
  for (const Fault& fault : parsed.faults) {
    text += std::to_string(fault.line) + ":" + std::to_string(fault.column) + " " + fault.path;
    text += "\n";
  }
  return text;
}

inline std::string PlacesOf(std::string_view text) {
  const Parsed parsed = Parse(text);
  EXPECT_FALSE(parsed.spec.has_value()) << text;
  return PlaceLines(parsed);
}

// A faulty part of a file, and the place that one of its faults must name: "5:3: parameters.x: ".
struct FaultCase {
  const char* text;
  const char* place;
};

// Expects a fault at the place of each case. `make_file` makes a whole file of a case's text.
// Returns a table of the texts and, below each, its messages, for a golden file.
template <class MakeFile>
std::string ExpectFaults(std::initializer_list<FaultCase> cases, MakeFile make_file) {
  std::string table;
  for (const auto& [text, place] : cases) {
    const std::string faults = FaultsOf(make_file(std::string(text)));
    EXPECT_THAT(faults, ::testing::HasSubstr(place)) << text;
    table += std::string(text) + "\n" + faults + "\n";
  }
  return table;
}

}  // namespace attune::sweepfile

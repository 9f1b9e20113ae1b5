#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

// Why a trial is tried with its configuration, in numbers, and in a sentence: `text`.
struct Rationale {
  std::string rule;               // how it was found: "random", "sobol", "density_ratio", …
  std::vector<TrialNumber> from;  // trials that it was made of, or lies near
  int64_t results = 0;            // of trials, that were learned from
  std::optional<double> score;    // what it was chosen by among others, where there were any
  std::string text;
  bool operator==(const Rationale&) const = default;
};

// What a searcher answers to the question for a configuration.

struct Proposed {
  Config config;
  Rationale rationale;
  bool operator==(const Proposed&) const = default;
};

// None now, but perhaps when more is known. The text says what it waits for.
struct Wait {
  std::string text;
  bool operator==(const Wait&) const = default;
};

// None, and none later unless the sweep is edited.
struct Exhausted {
  std::string text;
  bool operator==(const Exhausted&) const = default;
};

using Suggestion = std::variant<Proposed, Wait, Exhausted>;

}  // namespace attune

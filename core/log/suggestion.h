#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

// Why the searcher proposed a configuration, as numbers and as a sentence (`text`).
struct Rationale {
  std::string rule;               // how it was found: "random", "sobol", "density_ratio", …
  std::vector<TrialNumber> from;  // trials that it was derived from or is close to
  int64_t results = 0;            // how many results the searcher had learned from
  std::optional<double> score;    // the best score among the candidates, if there were several
  std::string text;
  bool operator==(const Rationale&) const = default;
};

// ---- the answers of a searcher to a request for a configuration ------------------------------

struct Proposed {
  Config config;
  Rationale rationale;
  bool operator==(const Proposed&) const = default;
};

// No configuration now, but perhaps later. The text says what the searcher waits for.
struct Wait {
  std::string text;
  bool operator==(const Wait&) const = default;
};

// No configuration, and none later unless the sweep is edited.
struct Exhausted {
  std::string text;
  bool operator==(const Exhausted&) const = default;
};

using Suggestion = std::variant<Proposed, Wait, Exhausted>;

}  // namespace attune

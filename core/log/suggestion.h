#pragma once

#include <string>
#include <variant>

#include "core/space/value.h"

// What a searcher answers to the question for a configuration.
namespace attune {

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

using Suggestion = std::variant<Config, Wait, Exhausted>;

}  // namespace attune

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/log/event.h"

// Words for the member `effect`: what follows from a request that steers.
namespace attune::server {

// The status of an answer to a request that steers.
inline constexpr int kAccepted = 202;

// How many of the events are facts of this kind.
template <class T>
int64_t CountFacts(const std::vector<Event>& events) {
  return std::ranges::count_if(
      events, [](const Event& event) { return std::holds_alternative<T>(event.fact); });
}

// 1 trial, 12 trials
inline std::string Plural(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace attune::server

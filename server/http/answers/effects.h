#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/log/event.h"

// Helpers for the member `effect`, which describes the effect of a control request.
namespace attune::server {

// The status of an answer to a control request.
inline constexpr int kAccepted = 202;

// The number of events whose fact has this type.
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

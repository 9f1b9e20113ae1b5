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

// For example: its tags are best, lr; its note is saved
inline std::string AnnotationEffect(const Annotation& changes) {
  std::string text;
  if (changes.tags) {
    for (const std::string& tag : *changes.tags) text += (text.empty() ? "" : ", ") + tag;
    text = text.empty() ? "it has no tags now" : "its tags are " + text;
  }
  if (changes.note) {
    if (!text.empty()) text += "; ";
    text += changes.note->empty() ? "its note is removed" : "its note is saved";
  }
  return text.empty() ? "nothing changes: it has this note and these tags already" : text;
}

}  // namespace attune::server

#pragma once

#include <gmock/gmock.h>

namespace attune::testing {

// Matches a text that contains each of the values: names, keys, numbers. The words between them may
// change; golden.h compares whole texts.
template <class... Values>
auto Mentions(const Values&... values) {
  return ::testing::AllOf(::testing::HasSubstr(values)...);
}

}  // namespace attune::testing

#pragma once

// ATTUNE_CHECK(condition): a broken invariant of our own code. Kept in release builds; prints the
// place and aborts. Never for what a user, a file or a peer may do: that is a Result.
namespace attune::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

// Aborts because the value of a Result was used although it holds an error with this message.
[[noreturn]] void ValueMissing(const char* error_message);
}  // namespace attune::internal

#define ATTUNE_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::attune::internal::CheckFailed(#condition, __FILE__, __LINE__))

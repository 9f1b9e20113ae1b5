#pragma once

// ATTUNE_CHECK(condition) checks an invariant of our own code. If it is broken, the program prints
// the place and aborts, in release builds as well. For mistakes of users, files and peers, use a
// Result.
namespace attune::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

// Aborts because the value of a Result was used although it holds an error with this message.
[[noreturn]] void ValueMissing(const char* error_message);
}  // namespace attune::internal

#define ATTUNE_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::attune::internal::CheckFailed(#condition, __FILE__, __LINE__))

#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>

#include "attune/error.h"
#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::inline sdk::trainable {

// Throws an exception with the text "what: strerror(number)": DiskFull if the disk is full,
// otherwise Error.
[[noreturn]] void ThrowSystemError(const std::string& what, int number);
[[noreturn]] void ThrowErrno(const std::string& what);  // the same, with errno

// Returns the value, or throws the error with a message that begins with `what`.
template <typename T>
T OrThrow(Result<T> result, const std::string& what) {
  if (!result.ok()) throw Error(what + ": " + result.error().message);
  return *std::move(result);
}

using Clock = std::chrono::steady_clock;

// Waits for these events of poll(), or for the end of the connection. Returns false at the
// deadline.
bool Poll(const UniqueFd& socket, short events, Clock::time_point deadline);

// Returns a non-blocking stream socket that is connected to this address. If the host is
// unreachable, it retries for two minutes, about as long as TCP does, because the next attempt may
// succeed on a network that loses packets. If there is no connection by the deadline, returns an
// invalid descriptor and sets errno. Throws Error if this process cannot create a socket.
UniqueFd Connect(const sockaddr* address, socklen_t size, Clock::time_point deadline);

}  // namespace attune::inline sdk::trainable

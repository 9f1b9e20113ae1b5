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

// "what: strerror(number)", as an exception: DiskFull if it says so, else Error.
[[noreturn]] void ThrowSystemError(const std::string& what, int number);
[[noreturn]] void ThrowErrno(const std::string& what);  // the same, with errno

// The value, or the error as an exception that begins with `what`.
template <typename T>
T OrThrow(Result<T> result, const std::string& what) {
  if (!result.ok()) throw Error(what + ": " + result.error().message);
  return *std::move(result);
}

using Clock = std::chrono::steady_clock;

// Waits for these events of poll(), or for the end of the connection. False when the time is up.
bool Poll(const UniqueFd& socket, short events, Clock::time_point deadline);

// A stream socket that is connected to this address, non-blocking. A host that is not found is
// tried again for two minutes, about as long as TCP tries: on a network that loses packets it may
// be found in the next try. Without a connection, also at the deadline: none, and errno says why.
// Throws Error where this process can have no socket, which is not the other's fault.
UniqueFd Connect(const sockaddr* address, socklen_t size, Clock::time_point deadline);

}  // namespace attune::inline sdk::trainable

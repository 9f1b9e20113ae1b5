#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "attune/error.h"
#include "channel/or_error.h"
#include "channel/unique_fd.h"

namespace attune::trainable {

using channel::UniqueFd;

// "what: strerror(errno)", as an exception.
[[noreturn]] void ThrowErrno(const std::string& what);

// The value, or the error as an exception that begins with `what`.
template <typename T>
T OrThrow(channel::OrError<T> result, const std::string& what) {
  if (!result.ok()) throw Error(what + ": " + result.error());
  return std::move(result.value());
}

// In a freshly forked child: SIGKILL when the parent dies, also when it already has.
void DieWithParent(pid_t parent);

}  // namespace attune::trainable

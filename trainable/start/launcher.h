#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// How a process that may fork ranks goes on: a rank has a channel; the forking process itself has
// nothing left to do but exit.
struct Role {
  std::optional<UniqueFd> channel;
  UniqueFd driver;                // of a rank that a driver has asked for: the way to it
  std::vector<std::string> args;  // of the rank, the program's name not among them
  int exit_code = 0;
};

// Throws Error unless this process has one thread, as one that forks ranks needs; `before` is the
// call that forks.
void CheckSingleThreaded(const std::string& before);

// Before a fork: what is still in a buffer then would be printed by both.
void FlushOutput();

// Serves the launcher protocol (docs/worker-channel.md) on a seqpacket socket until the executor
// closes it: forks ranks on request, passes on their ends. Returns in each rank with its channel,
// and in the launcher, when all is over, without one.
//
// REQUIRES: the process has one thread and has run no tensor operation; the first is checked.
Role ServeLauncher(UniqueFd socket);

// The same for the ranks of one gang at a time, in a process that was forked for it. What they
// print goes where this process prints: `fork` carries their channel, and their way to a driver
// where there is one. Nothing of theirs survives them: whatever they started, however it left them,
// is gone before the end of the last of them is told, and before this process ends. Ranks have the
// signal mask `rank_signals`. It also ends with `owner`, a pidfd of the process that it serves.
//
// Returns in ranks only.
Role ServeLocalLauncher(UniqueFd socket, const sigset_t& rank_signals, const UniqueFd& owner);

}  // namespace attune::inline sdk::trainable

#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// What a worker is to do that a launcher has just forked.
struct ForkedWorker {
  UniqueFd channel;
  UniqueFd driver;                // the socket to its driver, if it has one
  std::vector<std::string> args;  // without the program's name
};

// Throws Error unless this process has one thread, as a process that forks workers must; `before`
// is the call that forks.
void CheckSingleThreaded(const std::string& before);

// Makes this process a launcher: serves the launcher protocol (docs/reference/worker-channel.md) on
// a seqpacket socket until the executor closes it. Forks workers on request and reports their ends.
// Returns in each worker, and in the launcher without a value when the executor is gone.
//
// REQUIRES: the process has one thread and has run no tensor operation; the former is checked.
std::optional<ForkedWorker> ServeLauncher(UniqueFd socket);

// A launcher that this process has forked and owns. This process may then start threads, use
// tensors, and run gangs of any size one after the other.
//
// The launcher's workers print to this process's terminal. The launcher ends with this process,
// however that ends. Nothing that its workers have started outlives the last worker or the
// launcher. If SIGKILL ends the launcher alone, its workers and their process group end with it,
// and a process that has left the group may stay.
class Launcher {
 public:
  // Returns the launcher here, and in each worker that it forks what the worker is to do. Workers
  // have the signal mask `worker_signals`. Throws Error.
  //
  // REQUIRES: one thread, no tensor operation so far.
  static std::variant<Launcher, ForkedWorker> Fork(const sigset_t& worker_signals);

  Launcher(Launcher&&) = default;
  // Returns when no process of the launcher is left, or kPatience has passed.
  ~Launcher();

  // Another launcher, forked from this one, for another gang at the same time. Its workers return
  // from Fork() too. For one thread at a time. Throws Error.
  Launcher ForkLauncher();

  static constexpr std::chrono::seconds kPatience{5};

  int socket() const { return socket_.get(); }

 private:
  Launcher(pid_t pid, UniqueFd pidfd, UniqueFd socket)
      : pid_(pid), pidfd_(std::move(pidfd)), socket_(std::move(socket)) {}

  pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd socket_;
};

}  // namespace attune::inline sdk::trainable

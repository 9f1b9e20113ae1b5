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

// The inputs of a worker that a launcher has just forked.
struct ForkedWorker {
  UniqueFd channel;
  UniqueFd driver;                // the socket to its driver, if it has one
  std::vector<std::string> args;  // without the program's name
};

// Throws Error if this process has more than one thread, because it must fork workers. `before`
// names the call that forks.
void CheckSingleThreaded(const std::string& before);

// Makes this process a launcher. It serves the launcher protocol (docs/reference/worker-channel.md)
// on a seqpacket socket until the executor closes it. It forks workers on request and reports their
// ends. Returns a value in each worker, and nullopt in the launcher when the executor is gone.
//
// REQUIRES: the process has one thread and has run no tensor operation; threads are checked.
std::optional<ForkedWorker> ServeLauncher(UniqueFd socket);

// A launcher that this process has forked and owns. Afterwards this process may start threads, use
// tensors, and run gangs of any size, one after the other.
//
// The launcher's workers print to this process's terminal. The launcher ends with this process,
// however it ends. Processes that its workers started end with the last worker or with the
// launcher. If SIGKILL ends only the launcher, its workers and their process group end too, but a
// process that has left the group may survive.
class Launcher {
 public:
  // Returns the launcher in this process, and a ForkedWorker in each worker that it forks. Workers
  // get the signal mask `worker_signals`. Throws Error.
  //
  // REQUIRES: this process has one thread and has run no tensor operation.
  static std::variant<Launcher, ForkedWorker> Fork(const sigset_t& worker_signals);

  Launcher(Launcher&&) = default;
  // Returns when no process of the launcher is left, or kPatience has passed.
  ~Launcher();

  // Forks another launcher from this one, for another gang at the same time. Its workers return
  // from Fork() too. Call it from one thread at a time. Throws Error.
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

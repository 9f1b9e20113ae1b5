#pragma once

#include <csignal>
#include <variant>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"
#include "trainable/start/launcher.h"
#include "trainable/start/local_gang.h"

namespace attune::inline sdk::trainable {

// A process that was forked from this one while it had one thread, and forks launchers of ranks
// when it is asked to, so that any number of gangs may run at a time. It ends with this process,
// whatever ends it; each launcher ends, with its ranks, when the LocalLauncher does.
class Zygote {
 public:
  // Returns here with the zygote, and in each rank of any of its launchers with what the rank is to
  // do. Ranks have the signal mask `rank_signals`. Throws Error.
  //
  // REQUIRES: one thread, which is checked, and no tensor operation so far.
  static std::variant<Zygote, Role> Fork(const sigset_t& rank_signals);

  // Throws Error. For one thread at a time.
  LocalLauncher ForkLauncher();

 private:
  explicit Zygote(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

}  // namespace attune::inline sdk::trainable

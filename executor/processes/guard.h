#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/result.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// If this process was started as a guard, does a guard's work and never returns. Otherwise returns
// at once. A program that runs gangs calls it first thing in main, before it makes any thread.
void MaybeRunGuard(int argc, char** argv);

// A tiny process that outlives this one for a moment: when this one is gone, however it ended, the
// guard kills every process group it was told of. The parent-death signal alone would spare the
// ranks' own children. It does so, too, when a deadline passes that nobody has moved on: this
// process may be stopped, or stuck in the kernel, while its ranks train on.
//
// The guard is this very program, started again and caught by MaybeRunGuard(), so that it can also
// be restarted, should it be killed, from a process that has threads by now.
//
// Used on the loop's thread only, but for SetDeadline().
class Guard {
 public:
  // REQUIRES: main called MaybeRunGuard(); without, it is an error.
  // `cgroups`, the folder of a Cgroups, is ended as well; empty: there is none.
  static Result<std::unique_ptr<Guard>> Start(Loop& loop, std::filesystem::path cgroups = {});

  // Ends the guard process, which kills the groups it still has.
  ~Guard();

  void Add(pid_t group);
  void Remove(pid_t group);

  // When the guard kills all that it knows of, in time since the machine started, and then goes on
  // as before; zero: never. Replaces the deadline before it, which counts until then. Any thread.
  void SetDeadline(std::chrono::nanoseconds since_start);

  // For SpawnRequest::announce_fd: closes the gap between a process's start and its Add().
  int announce_fd() const { return socket_.get(); }

  pid_t pid() const { return child_.pid; }

 private:
  Guard(Loop& loop, std::filesystem::path cgroups) : loop_(loop), cgroups_(std::move(cgroups)) {}

  Result<pid_t> Launch();
  template <typename Word>
  void Tell(Word word);
  void Restart();

  Loop& loop_;
  std::filesystem::path cgroups_;
  std::set<pid_t> groups_;
  // For SetDeadline(), which does not wait for the loop's thread: that may be busy for long with a
  // slow disk, while the lease is renewed. Only the loop's thread changes the child and the socket.
  std::mutex mutex_;
  Child child_;                           // under mutex_
  UniqueFd socket_;                       // under mutex_
  std::chrono::nanoseconds deadline_{0};  // under mutex_
  int restarts_ = 0;
  Loop::Clock::time_point launched_;
  Loop::Subscription death_;
  Loop::Subscription restart_;
};

}  // namespace attune::gang

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

// Runs the guard and never returns if this process was started as a guard, or as a follow-up
// (follow_up.h). Otherwise returns immediately. A program that runs gangs must call it at the
// beginning of main(), before it starts a thread.
void MaybeRunGuard(int argc, char** argv);

// A small process that outlives this one for a moment. When this process has ended for any reason,
// the guard kills every process group that was added. The parent-death signal alone would not kill
// the children of ranks. The guard also kills the groups at the deadline if it was not extended:
// this process may be stopped or hang in the kernel while its ranks train.
//
// The guard runs the same program file, which MaybeRunGuard() turns into a guard. So it can be
// restarted after a kill, even though this process then has threads and must not fork without exec.
//
// Use on the loop's thread only, except SetDeadline().
class Guard {
 public:
  // REQUIRES: main() has called MaybeRunGuard(); otherwise this returns an error. The guard also
  // ends `cgroups`, the folder of a Cgroups object; empty: none.
  static Result<std::unique_ptr<Guard>> Start(Loop& loop, std::filesystem::path cgroups = {});

  // Ends the guard process, which kills the groups that were not removed.
  ~Guard();

  void Add(pid_t group);
  void Remove(pid_t group);

  // Sets the time at which the guard kills all groups and cgroups; it keeps running after that. The
  // time counts from the start of the machine; zero: never. Replaces the previous deadline.
  // Thread-safe.
  void SetDeadline(std::chrono::nanoseconds since_start);

  // For SpawnRequest::announce_fd: protects a process between its start and its Add().
  int announce_fd() const { return socket_.get(); }

  pid_t pid() const { return child_.pid; }

 private:
  Guard(Loop& loop, std::filesystem::path cgroups) : loop_(loop), cgroups_(std::move(cgroups)) {}

  Result<pid_t> Launch();
  template <typename Word>
  void Send(Word word);
  void Restart();

  Loop& loop_;
  std::filesystem::path cgroups_;
  std::set<pid_t> groups_;
  // For SetDeadline(), which runs on other threads: the loop's thread may block on a slow disk
  // while the lease is renewed. Only the loop's thread changes the child and the socket.
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

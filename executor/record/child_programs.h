#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::agent {

// Runs programs, one at a time, to read their output. They stay in the process group of this
// process, so that the supervisor of gangs does not reap them.
class ChildPrograms {
 public:
  static constexpr size_t kOutputBytesMax = 4 << 20;

  ChildPrograms();

  // Returns the start of the program's output to stdout, at most kOutputBytesMax bytes. Returns
  // nullopt if the program cannot start, fails, or runs when the timeout is over or End() is
  // called; then it is killed with its children. stderr is dropped.
  //
  // Call it on one thread. The kernel kills the program when this thread ends.
  std::optional<std::string> Output(SpawnRequest request, std::chrono::milliseconds timeout);

  // Kills the running program; later calls of Output() return nullopt. Any thread.
  void End();

 private:
  using Clock = std::chrono::steady_clock;

  // Reads until the program exits. Returns false if it must be killed.
  bool ReadUntilExit(const Child& child, UniqueFd& reader, Clock::time_point deadline,
                     std::string& output) const;
  void Kill(Child child);

  UniqueFd end_;                    // an eventfd, readable after End()
  std::vector<UniqueFd> unreaped_;  // of killed programs that hung in the kernel
};

}  // namespace attune::agent

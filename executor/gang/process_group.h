#pragma once

#include <sys/types.h>

#include <vector>

namespace attune::gang {

// What the kernel says of a process.
struct ProcessState {
  pid_t parent = 0;  // 0: there is no such process
  pid_t group = 0;
  bool is_dead = true;  // ended, and perhaps not reaped yet
};
ProcessState StateOf(pid_t pid);
std::vector<pid_t> AllProcesses();

// Sends SIGKILL to every process of `group`. All die at one instant, so none can fork itself out.
// REQUIRES: group > 1.
void KillGroup(pid_t group);

// Reaps those of the group that are children of this process, by birth or by adoption, and have
// ended. Ranks of the group must have been reaped, or their exit status is lost.
void ReapGroup(pid_t group);

// Processes of the group that still run. Cheap when there are none left, dead or alive.
std::vector<pid_t> LiveMembers(pid_t group);

}  // namespace attune::gang

#pragma once

#include <sys/types.h>

#include <vector>

namespace attune::gang {

// Sends SIGKILL to every process of `group` at once, so that none can escape by forking. REQUIRES:
// group > 1.
void KillGroup(pid_t group);

// Reaps processes of the group that have ended and are children of this process, including adopted
// ones. Ranks of the group must have been reaped before, or their exit status is lost.
void ReapGroup(pid_t group);

// Returns the processes of the group that still run. Cheap if the group has no processes left.
std::vector<pid_t> LiveMembers(pid_t group);

}  // namespace attune::gang

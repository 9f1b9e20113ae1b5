#pragma once

#include <sys/types.h>

#include <vector>

namespace attune::gang {

// Sends SIGKILL to every process of `group`. All die at one instant, so none can fork itself out.
// REQUIRES: group > 1.
void KillGroup(pid_t group);

// Reaps those of the group that are children of this process, by birth or by adoption, and have
// ended. Ranks of the group must have been reaped, or their exit status is lost.
void ReapGroup(pid_t group);

// Processes of the group that still run. Cheap when there are none left, dead or alive.
std::vector<pid_t> LiveMembers(pid_t group);

}  // namespace attune::gang

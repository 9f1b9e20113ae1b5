#include "executor/processes/process_group.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "system/processes.h"

namespace attune::gang {

void KillGroup(pid_t group) {
  if (group > 1) kill(-group, SIGKILL);
}

void ReapGroup(pid_t group) {
  while (waitpid(-group, nullptr, WNOHANG) > 0) {
  }
}

std::vector<pid_t> LiveMembers(pid_t group) {
  std::vector<pid_t> members;
  if (kill(-group, 0) != 0 && errno == ESRCH) return members;
  for (const pid_t pid : AllProcesses()) {
    const ProcessState process = ReadProcess(pid);
    if (process.group == group && !process.is_dead) members.push_back(pid);
  }
  return members;
}

}  // namespace attune::gang

#include "executor/gang/orphans.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "channel/processes.h"

namespace attune::gang {
namespace {

// The kernel's own list, where it keeps one; otherwise everybody, of whom the parent is looked at.
// Adopted children are the first thread's as long as it lives, which is as long as the program
// runs.
std::vector<pid_t> PossibleChildren() {
  const std::string self = std::to_string(getpid());
  std::ifstream file("/proc/self/task/" + self + "/children");
  if (!file.is_open()) return channel::AllProcesses();
  std::vector<pid_t> pids;
  pid_t pid = 0;
  while (file >> pid) pids.push_back(pid);
  return pids;
}

// The variables that a process began with.
std::set<std::string> EnvironmentOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::set<std::string> variables;
  std::string variable;
  while (std::getline(file, variable, '\0')) variables.insert(variable);
  return variables;
}

bool BelongsTo(const AttemptId& attempt, bool alone, const std::set<std::string>& environment) {
  const auto has = [&](std::string_view prefix) {
    const auto found = environment.lower_bound(std::string(prefix));
    return found != environment.end() && found->starts_with(prefix);
  };
  if (!has("ATTUNE_ATTEMPT=")) return alone && has("ATTUNE_LAUNCHER_FD=");
  return environment.contains("ATTUNE_SWEEP=s" + std::to_string(attempt.sweep)) &&
         environment.contains("ATTUNE_TRIAL=" + std::to_string(attempt.trial)) &&
         environment.contains("ATTUNE_ATTEMPT=" + std::to_string(attempt.attempt));
}

}  // namespace

std::vector<pid_t> Orphans(const AttemptId& attempt, bool alone,
                           const std::function<bool(pid_t)>& is_known) {
  std::vector<pid_t> orphans;
  for (const pid_t pid : PossibleChildren()) {
    if (is_known(pid)) continue;
    const channel::ProcessState process = channel::StateOf(pid);
    if (process.parent != getpid()) continue;
    if (process.is_dead) {
      // Children that this program made for other purposes stay in its own process group.
      if (process.group != getpgrp()) waitpid(pid, nullptr, WNOHANG);
    } else if (BelongsTo(attempt, alone, EnvironmentOf(pid))) {
      orphans.push_back(pid);
    }
  }
  return orphans;
}

}  // namespace attune::gang

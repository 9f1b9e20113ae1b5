#include "executor/gang/orphans.h"

#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "executor/gang/process_group.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

// The kernel's own list, where it keeps one; otherwise everybody, of whom the parent is looked at.
std::vector<pid_t> PossibleChildren() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  bool listed = false;
  for (const auto& thread : fs::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(thread.path() / "children");
    listed = listed || file.is_open();
    pid_t pid = 0;
    while (file >> pid) pids.push_back(pid);
  }
  return listed ? pids : AllProcesses();
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
    const ProcessState process = StateOf(pid);
    if (process.parent != getpid() || is_known(pid)) continue;
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

#include "system/processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/parse_number.h"

namespace attune {

ProcessState ReadProcess(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  // The format is `pid (name) state parent group ...`; the name may contain parentheses and spaces.
  const size_t name_end = stat.rfind(')');
  ProcessState process;
  if (name_end == std::string::npos) return process;
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  fields >> state >> process.parent >> process.group;
  process.is_dead = state == 'Z' || state == 'X';
  process.is_stopped = state == 'T' || state == 't';
  return process;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (const auto pid = ParseNumber<pid_t>(name)) pids.push_back(*pid);
  }
  return pids;
}

std::vector<Descendant> DescendantsOf(pid_t ancestor) {
  std::multimap<pid_t, Descendant> by_parent;
  for (const pid_t pid : AllProcesses()) {
    if (pid == ancestor) continue;
    const ProcessState state = ReadProcess(pid);
    by_parent.emplace(state.parent, Descendant{pid, state});
  }
  std::vector<Descendant> descendants;
  pid_t parent = ancestor;
  for (size_t next = 0;; parent = descendants[next++].pid) {
    const auto [first, last] = by_parent.equal_range(parent);
    for (auto child = first; child != last; ++child) descendants.push_back(child->second);
    if (next == descendants.size()) return descendants;
  }
}

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl()
}

}  // namespace attune

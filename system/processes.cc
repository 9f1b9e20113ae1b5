#include "system/processes.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace attune {

ProcessState StateOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  // `pid (name) state parent group ...`; a name may itself hold parentheses and spaces.
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
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

}  // namespace attune

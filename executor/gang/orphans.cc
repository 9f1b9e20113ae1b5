#include "executor/gang/orphans.h"

#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "system/processes.h"

namespace attune::gang {
namespace {

// Children of this process from the kernel's list, or all processes if the kernel keeps no such
// list. Adopted children belong to the first thread, which lives as long as the program.
std::vector<pid_t> PossibleChildren() {
  const std::string self = std::to_string(getpid());
  std::ifstream file("/proc/self/task/" + self + "/children");
  if (!file.is_open()) return AllProcesses();
  std::vector<pid_t> pids;
  pid_t pid = 0;
  while (file >> pid) pids.push_back(pid);
  return pids;
}

// The initial environment of a process.
std::set<std::string> InitialEnvironment(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::set<std::string> variables;
  std::string variable;
  while (std::getline(file, variable, '\0')) variables.insert(variable);
  return variables;
}

// The address at which a process's environment ends (field 51 of /proc/PID/stat in proc(5); the
// state is field 3). Each exec changes it. It is absent during an exec, and present even if the
// environment is empty.
std::string EnvironmentEnd(pid_t pid) {
  constexpr int kStateField = 3;
  constexpr int kEnvironmentEndField = 51;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  std::string field;
  if (name_end == std::string::npos) return field;
  std::istringstream fields(stat.substr(name_end + 1));
  for (int i = kStateField; i <= kEnvironmentEndField; ++i) fields >> field;
  return field == "0" ? "" : field;
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

Orphans FindOrphans(const AttemptId& attempt, bool alone,
                    const std::function<bool(pid_t)>& is_known) {
  Orphans orphans;
  for (const pid_t pid : PossibleChildren()) {
    if (is_known(pid)) continue;
    const ProcessState process = ReadProcess(pid);
    if (process.parent != getpid()) continue;
    if (process.is_dead) {
      // Other code of this program reaps its own children, which stay in its process group.
      if (process.group != getpgrp()) waitpid(pid, nullptr, WNOHANG);
      continue;
    }
    const std::string before = EnvironmentEnd(pid);
    if (BelongsTo(attempt, alone, InitialEnvironment(pid))) {
      orphans.pids.push_back(pid);
    } else if (before.empty() || EnvironmentEnd(pid) != before) {
      orphans.is_unsure = true;
    }
  }
  return orphans;
}

std::optional<int> RankOf(pid_t pid) {
  constexpr std::string_view kPrefix = "ATTUNE_RANK=";
  for (const std::string& variable : InitialEnvironment(pid)) {
    int rank = 0;
    if (!variable.starts_with(kPrefix)) continue;
    const char* end = variable.data() + variable.size();
    if (std::from_chars(variable.data() + kPrefix.size(), end, rank).ec == std::errc()) return rank;
  }
  return std::nullopt;
}

}  // namespace attune::gang

#include "executor/gang/leftovers.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "executor/gang/orphans.h"
#include "executor/processes/process_group.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"

namespace attune::gang {
namespace {

// Pause before the next look at a process that has no environment yet.
constexpr std::chrono::milliseconds kRetryPause{1};
constexpr int kRetriesMax = 100;

}  // namespace

Leftovers::Leftovers(Services services, const AttemptId& attempt, std::function<void()> retry)
    : services_(std::move(services)), attempt_(attempt), retry_(std::move(retry)) {}

bool Leftovers::KillRemaining(pid_t group, Cgroup* cgroup) {
  if (!dying_.empty()) return false;
  KillGroup(group);
  ReapGroup(group);
  if (cgroup) {
    for (UniqueFd& pidfd : cgroup->Kill()) Await(std::move(pidfd));
  }
  std::vector<pid_t> killed = FindOrphansOfAttempt();
  for (const pid_t pid : killed) {
    kill(pid, SIGKILL);  // a child of this process, so its pid was not reused
  }
  for (const pid_t member : LiveMembers(group)) killed.push_back(member);
  for (const pid_t pid : killed) {
    if (UniqueFd pidfd = OpenPidfd(pid)) Await(std::move(pidfd));
  }
  return dying_.empty() && !retry_timer_;
}

std::set<pid_t> Leftovers::FindRemaining(pid_t group, const Cgroup* cgroup) {
  ReapGroup(group);
  std::set<pid_t> left;
  if (cgroup) left = cgroup->Processes();
  for (const pid_t orphan : FindOrphansOfAttempt()) left.insert(orphan);
  for (const pid_t member : LiveMembers(group)) left.insert(member);
  return left;
}

bool Leftovers::AreGone(pid_t group, const Cgroup* cgroup) {
  if (!dying_.empty()) return false;
  for (const pid_t pid : FindRemaining(group, cgroup)) {
    if (UniqueFd pidfd = OpenPidfd(pid)) Await(std::move(pidfd));
  }
  return dying_.empty() && !retry_timer_;
}

// When a rank ends, this process, the subreaper, adopts its children.
void Leftovers::Terminate(pid_t group, const Cgroup* cgroup, const std::set<int>& running_ranks) {
  const auto may_be_needed = [&](pid_t pid) {
    if (running_ranks.empty()) return false;
    const std::optional<int> rank = RankOf(pid);
    return !rank || running_ranks.contains(*rank);
  };
  const std::set<pid_t> in_cgroup = cgroup ? cgroup->Processes() : std::set<pid_t>();
  const std::vector<pid_t> orphans = FindOrphansOfAttempt();
  const std::vector<Descendant> all = DescendantsOf(getpid());
  std::set<pid_t> below;
  std::vector<UniqueFd> pidfds;
  for (const auto& [pid, state] : all) {  // parents come before their children
    const bool is_left = state.parent == getpid() && !services_.is_known(pid) &&
                         (state.group == group || in_cgroup.contains(pid) ||
                          std::ranges::find(orphans, pid) != orphans.end());
    if (!below.contains(state.parent) && (!is_left || may_be_needed(pid))) continue;
    below.insert(pid);
    if (state.is_dead || !terminated_.insert(pid).second) continue;
    UniqueFd pidfd = OpenPidfd(pid);
    // The pidfd pins the pid; check that the pid was not reused before.
    if (pidfd && ReadProcess(pid).parent == state.parent) pidfds.push_back(std::move(pidfd));
  }
  // Signalled after the loop, because children of an ending process get a new parent.
  for (const UniqueFd& pidfd : pidfds)
    syscall(SYS_pidfd_send_signal, pidfd.get(), SIGTERM, nullptr, 0);
}

std::vector<pid_t> Leftovers::FindOrphansOfAttempt() {
  const bool alone = !services_.other_gangs_run(attempt_);
  Orphans orphans = FindOrphans(attempt_, alone, services_.is_known);
  retry_timer_.Reset();
  if (orphans.is_unsure && ++retries_ < kRetriesMax) {
    retry_timer_ = services_.loop.CallAfter(kRetryPause, [this] {
      retry_timer_.Reset();
      retry_();
    });
  }
  return std::move(orphans.pids);
}

void Leftovers::Await(UniqueFd pidfd) {
  const int fd = pidfd.get();
  Loop::Subscription exit = services_.loop.Watch(fd, EPOLLIN, [this, fd](uint32_t) {
    Reap(fd);  // in case it is a child of this process
    std::erase_if(dying_, [fd](const Dying& each) { return each.pidfd.get() == fd; });
    retry_();
  });
  dying_.push_back({std::move(pidfd), std::move(exit)});
}

}  // namespace attune::gang

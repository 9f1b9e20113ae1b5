#include "executor/gang/leftovers.h"

#include <signal.h>
#include <sys/epoll.h>

#include <chrono>
#include <utility>

#include "executor/gang/orphans.h"
#include "executor/processes/process_group.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"

namespace attune::gang {
namespace {

// For a process that has no environment yet by which to know it.
constexpr std::chrono::milliseconds kSecondLook{1};
constexpr int kSecondLooksMax = 100;

}  // namespace

Leftovers::Leftovers(Services services, const AttemptId& attempt, std::function<void()> again)
    : services_(std::move(services)), attempt_(attempt), again_(std::move(again)) {}

bool Leftovers::End(pid_t group, Cgroup* cgroup) {
  if (!dying_.empty()) return false;
  KillGroup(group);
  ReapGroup(group);
  if (cgroup) {
    for (UniqueFd& pidfd : cgroup->Kill()) Await(std::move(pidfd));
  }
  std::vector<pid_t> killed = KillOrphans();
  for (const pid_t member : LiveMembers(group)) killed.push_back(member);
  for (const pid_t pid : killed) {
    if (UniqueFd pidfd = OpenPidfd(pid)) Await(std::move(pidfd));
  }
  return dying_.empty() && !second_look_;
}

std::vector<pid_t> Leftovers::KillOrphans() {
  const bool alone = !services_.others_run(attempt_);
  Orphans orphans = FindOrphans(attempt_, alone, services_.is_known);
  for (const pid_t pid : orphans.pids) {
    kill(pid, SIGKILL);  // a child of this process, so the number is still its own
  }
  second_look_.Reset();
  if (orphans.is_unsure && ++second_looks_ < kSecondLooksMax) {
    second_look_ = services_.loop.After(kSecondLook, [this] {
      second_look_.Reset();
      again_();
    });
  }
  return std::move(orphans.pids);
}

void Leftovers::Await(UniqueFd pidfd) {
  const int fd = pidfd.get();
  Loop::Subscription exit = services_.loop.Watch(fd, EPOLLIN, [this, fd](uint32_t) {
    Reap(fd);  // if it is this process's
    std::erase_if(dying_, [fd](const Dying& each) { return each.pidfd.get() == fd; });
    again_();
  });
  dying_.push_back({std::move(pidfd), std::move(exit)});
}

}  // namespace attune::gang

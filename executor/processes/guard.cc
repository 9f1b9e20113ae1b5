#include "executor/processes/guard.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "channel/sockets.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/process_group.h"

namespace attune::gang {
namespace {

constexpr std::string_view kGuardArgument = "--attune-process-guard";

constexpr std::chrono::seconds kRestartPause{1};

bool main_runs_guards = false;

// Words on the socket: a positive one adds a group, a negative one removes it.
[[noreturn]] void RunGuard(const std::filesystem::path& cgroups) {
  std::set<pid_t> groups;
  pid_t word;
  for (;;) {
    const ssize_t count = recv(kInheritedFd, &word, sizeof word, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof word) break;  // the other end is gone
    if (word > 0) {
      groups.insert(word);
    } else {
      groups.erase(-word);
    }
  }
  for (const pid_t group : groups) KillGroup(group);
  if (!cgroups.empty()) EndCgroups(cgroups);
  _exit(0);
}

}  // namespace

void MaybeRunGuard(int argc, char** argv) {
  if (argc == 3 && argv[1] == kGuardArgument) {
    prctl(PR_SET_NAME, "attune-guard");
    RunGuard(argv[2]);
  }
  main_runs_guards = true;
}

OrError<std::unique_ptr<Guard>> Guard::Start(Loop& loop, std::filesystem::path cgroups) {
  if (!main_runs_guards) {
    return Error{"gangs need their guard: call attune::gang::MaybeRunGuard() first in main"};
  }
  std::unique_ptr<Guard> guard(new Guard(loop, std::move(cgroups)));
  const OrError<pid_t> pid = guard->Launch();
  if (!pid.ok()) return Error{"cannot start the process guard: " + pid.error()};
  return guard;
}

Guard::~Guard() {
  death_.Reset();
  socket_.reset();
  siginfo_t info{};
  if (child_.pidfd) waitid(P_PIDFD, static_cast<id_t>(child_.pidfd.get()), &info, WEXITED);
}

OrError<pid_t> Guard::Launch() {
  auto ends = channel::SocketPair(SOCK_SEQPACKET);
  if (!ends.ok()) return Error{ends.error()};
  auto& [ours, theirs] = ends.value();
  // Its own session: neither Ctrl-C at a terminal nor a signal to our group may reach it.
  OrError<Child> child =
      Spawn({.program = "/proc/self/exe",
             .argv = {"attune-guard", std::string(kGuardArgument), cgroups_.string()},
             .environment = ProgramEnvironment({}),
             .inherited_fd = theirs.get(),
             .new_session = true,
             .dies_with_parent = false});
  if (!child.ok()) return Error{child.error()};
  launched_ = Loop::Clock::now();
  death_.Reset();
  child_ = std::move(child.value());
  socket_ = std::move(ours);
  death_ = loop_.Watch(child_.pidfd.get(), EPOLLIN, [this](uint32_t) { Restart(); });
  for (const pid_t group : groups_) Tell(group);
  return child_.pid;
}

void Guard::Add(pid_t group) {
  if (groups_.insert(group).second) Tell(group);
}

void Guard::Remove(pid_t group) {
  if (groups_.erase(group) > 0) Tell(-group);
}

void Guard::Tell(pid_t word) {
  const ssize_t sent = send(socket_.get(), &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
  // One that does not read, stopped perhaps, is as good as dead; its successor is told all groups.
  if (sent < 0 && child_.pidfd) {
    syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
  }
}

void Guard::Restart() {
  death_.Reset();
  if (child_.pidfd) Reap(child_.pidfd.get());
  child_.pidfd.reset();
  spdlog::warn("the process guard (pid {}) died; starting another", child_.pid);
  // If guards die one after another, perhaps for lack of memory, there is a pause between them.
  const bool lived = ++restarts_ == 1 || Loop::Clock::now() - launched_ > kRestartPause;
  restart_ = loop_.After(lived ? Loop::Clock::duration{0} : kRestartPause, [this] {
    const OrError<pid_t> pid = Launch();
    if (pid.ok()) return;
    spdlog::error("cannot restart the process guard: {}", pid.error());
    restart_ = loop_.After(kRestartPause, [this] { Restart(); });
  });
}

}  // namespace attune::gang

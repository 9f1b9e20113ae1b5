#include "executor/processes/guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "executor/processes/follow_up.h"
#include "executor/processes/process_group.h"
#include "logging/log.h"
#include "system/own_program.h"
#include "system/sockets.h"

namespace attune::gang {
namespace {

constexpr std::string_view kGuardArgument = "--attune-process-guard";

constexpr std::chrono::seconds kRestartPause{1};

bool main_runs_guards = false;

// Messages on the socket, distinguished by their size: a group to add or, if negative, to remove;
// or the deadline in nanoseconds, or 0 for none.
using GroupWord = pid_t;
using DeadlineWord = int64_t;
union Word {
  GroupWord group;
  DeadlineWord deadline;
};
static_assert(sizeof(GroupWord) < sizeof(DeadlineWord));

void SetTimer(int timer, DeadlineWord deadline) {
  constexpr DeadlineWord kSecond = 1'000'000'000;
  itimerspec spec{};
  spec.it_value.tv_sec = deadline / kSecond;
  spec.it_value.tv_nsec = deadline % kSecond;
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, nullptr);
}

[[noreturn]] void RunGuard(const std::filesystem::path& cgroups) {
  std::set<pid_t> groups;
  const UniqueFd timer(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  for (;;) {
    std::array<pollfd, 2> ready{{{kInheritedFd, POLLIN, 0}, {timer.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    // A late guard may find both ready. It reads messages first, because one may extend the
    // deadline.
    if (ready[0].revents == 0) {
      // Cgroups first: processes that the executor starts when it sees a group end are in them,
      // too.
      if (!cgroups.empty()) KillCgroups(cgroups);
      for (const pid_t group : groups) KillGroup(group);
      SetTimer(timer.get(), 0);
      continue;
    }
    Word word;
    const ssize_t count = recv(kInheritedFd, &word, sizeof word, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count == sizeof word.deadline) {
      SetTimer(timer.get(), word.deadline);
    } else if (count != sizeof word.group) {
      break;  // the executor is gone
    } else if (word.group > 0) {
      groups.insert(word.group);
    } else {
      groups.erase(-word.group);
    }
  }
  for (const pid_t group : groups) KillGroup(group);
  if (!cgroups.empty()) EndCgroups(cgroups);
  _exit(0);
}

}  // namespace

void MaybeRunGuard(int argc, char** argv) {
  MaybeRunFollowUp(argc, argv);
  if (argc == 3 && argv[1] == kGuardArgument) {
    prctl(PR_SET_NAME, "attune-guard");
    RunGuard(argv[2]);
  }
  main_runs_guards = true;
}

Result<std::unique_ptr<Guard>> Guard::Start(Loop& loop, std::filesystem::path cgroups) {
  if (!main_runs_guards) {
    return Error{ErrorCode::kInternal,
                 "gangs need the process guard; call attune::gang::MaybeRunGuard() at the "
                 "beginning of main()"};
  }
  std::unique_ptr<Guard> guard(new Guard(loop, std::move(cgroups)));
  const Result<pid_t> pid = guard->Launch();
  if (!pid.ok())
    return Error{pid.error().code, "cannot start the process guard: " + pid.error().message};
  return guard;
}

Guard::~Guard() {
  death_.Reset();
  socket_.reset();
  siginfo_t info{};
  if (child_.pidfd) waitid(P_PIDFD, static_cast<id_t>(child_.pidfd.get()), &info, WEXITED);
}

Result<pid_t> Guard::Launch() {
  auto ends = SocketPair(SOCK_SEQPACKET);
  if (!ends.ok()) return ends.error();
  auto& [ours, theirs] = ends.value();
  // A new session protects it from Ctrl-C in a terminal and from signals to our process group.
  Result<Child> child =
      Spawn({.program = OwnProgram(),
             .argv = {"attune-guard", std::string(kGuardArgument), cgroups_.string()},
             .environment = ProgramEnvironment({}),
             .inherited_fd = theirs.get(),
             .new_session = true,
             .dies_with_parent = false});
  if (!child.ok()) return child.error();
  launched_ = Loop::Clock::now();
  death_.Reset();
  const std::lock_guard lock(mutex_);
  child_ = std::move(child.value());
  socket_ = std::move(ours);
  death_ = loop_.Watch(child_.pidfd.get(), EPOLLIN, [this](uint32_t) { Restart(); });
  for (const pid_t group : groups_) Send(GroupWord{group});
  // Sent last: a deadline that has passed takes effect when the guard reads it.
  if (deadline_.count() != 0) Send(DeadlineWord{deadline_.count()});
  return child_.pid;
}

void Guard::Add(pid_t group) {
  const std::lock_guard lock(mutex_);
  if (groups_.insert(group).second) Send(GroupWord{group});
}

void Guard::Remove(pid_t group) {
  const std::lock_guard lock(mutex_);
  if (groups_.erase(group) > 0) Send(GroupWord{-group});
}

void Guard::SetDeadline(std::chrono::nanoseconds since_start) {
  const std::lock_guard lock(mutex_);
  deadline_ = since_start;
  Send(DeadlineWord{since_start.count()});
}

template <typename Word>
void Guard::Send(Word word) {
  const ssize_t sent = send(socket_.get(), &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
  // A guard that does not read, perhaps because it is stopped, is killed; Restart() sends
  // everything to a new one.
  if (sent < 0 && child_.pidfd) {
    syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
  }
}

void Guard::Restart() {
  death_.Reset();
  if (child_.pidfd) Reap(child_.pidfd.get());
  {
    const std::lock_guard lock(mutex_);
    child_.pidfd.reset();
  }
  logging::Warn("the process guard (pid {}) died; starting another", child_.pid);
  // If guards die repeatedly, perhaps for lack of memory, restarts are delayed.
  const bool lived = ++restarts_ == 1 || Loop::Clock::now() - launched_ > kRestartPause;
  restart_ = loop_.CallAfter(lived ? Loop::Clock::duration{0} : kRestartPause, [this] {
    const Result<pid_t> pid = Launch();
    if (pid.ok()) return;
    logging::Error("cannot restart the process guard: {}", pid.error().message);
    restart_ = loop_.CallAfter(kRestartPause, [this] { Restart(); });
  });
}

}  // namespace attune::gang

#include "executor/processes/guard.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kLongAgo{1};
constexpr nanoseconds kNever{0};

// A process that only the guard ends when this process ends.
Child Sleeper() {
  auto child = Spawn({.program = "/bin/sleep",
                      .argv = {"sleep", "1000"},
                      .environment = {},
                      .dies_with_parent = false});
  EXPECT_TRUE(child.ok());
  return std::move(child.value());
}

void ExpectKilled(const Child& child) {
  ASSERT_TRUE(WaitForEnd(child.pidfd.get()));
  EXPECT_EQ(Reap(child.pidfd.get())->signal, SIGKILL);
}

class GuardTest : public testing::Test {
 protected:
  GuardTest() : guard_(std::move(Guard::Start(loop_).value())) {}

  // Waits until the guard has handled all earlier messages.
  void Finish() {
    const Child last = Sleeper();
    guard_->Add(last.pid);
    guard_.reset();
    ExpectKilled(last);
  }

  static void ExpectAlive(const Child& child) {
    EXPECT_FALSE(Reap(child.pidfd.get()));
    kill(child.pid, SIGKILL);
    ExpectKilled(child);
  }

  // Runs the loop until a new guard has started.
  void RunUntilReplaced(pid_t pid) {
    Loop::Subscription next;
    std::function<void()> look = [&] {
      if (guard_->pid() != pid) return loop_.Quit();
      next = loop_.CallAfter(std::chrono::milliseconds(1), look);
    };
    next = loop_.CallAfter({}, look);
    loop_.Run();
  }

  Loop loop_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(GuardTest, KillsAddedGroupsWhenItsHostEnds) {
  const Child child = Sleeper();
  guard_->Add(child.pid);
  guard_.reset();
  ExpectKilled(child);
}

TEST_F(GuardTest, SparesRemovedGroups) {
  const Child removed = Sleeper();
  guard_->Add(removed.pid);
  guard_->Remove(removed.pid);
  Finish();
  ExpectAlive(removed);
}

TEST_F(GuardTest, TheSuccessorOfAKilledGuardKnowsTheGroups) {
  const Child child = Sleeper();
  guard_->Add(child.pid);
  const pid_t first = guard_->pid();
  kill(first, SIGKILL);
  RunUntilReplaced(first);
  guard_.reset();
  ExpectKilled(child);
}

TEST_F(GuardTest, KillsAtTheDeadlineOfAStoppedHost) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t host = fork();
  if (host == 0) {
    Loop loop;
    const auto guard = std::move(Guard::Start(loop).value());
    const Child child = Sleeper();
    guard->Add(child.pid);
    guard->SetDeadline(SinceStart() + milliseconds(100));
    if (write(writer.get(), &child.pid, sizeof child.pid) < 0) _exit(1);
    raise(SIGSTOP);
    _exit(0);
  }
  writer.reset();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(host), &info, WSTOPPED), 0);
  pid_t pid = 0;
  ASSERT_EQ(read(reader.get(), &pid, sizeof pid), ssize_t{sizeof pid});
  const UniqueFd pidfd = OpenPidfd(pid);
  ASSERT_TRUE(pidfd) << "the process was not reaped yet";
  EXPECT_TRUE(WaitForEnd(pidfd.get()));
  kill(host, SIGKILL);
  EXPECT_EQ(waitpid(host, nullptr, 0), host);
}

TEST_F(GuardTest, ALaterDeadlineReplacesAnUnreadExpiredOne) {
  const Child child = Sleeper();
  kill(guard_->pid(), SIGSTOP);
  guard_->Add(child.pid);
  guard_->SetDeadline(kLongAgo);
  guard_->SetDeadline(SinceStart() + std::chrono::hours(1));
  guard_->Remove(child.pid);
  kill(guard_->pid(), SIGCONT);
  Finish();
  ExpectAlive(child);
}

TEST_F(GuardTest, RenewedDeadlinesKeepGroupsAlive) {
  Loop loop;
  const auto other = std::move(Guard::Start(loop).value());
  const Child theirs = Sleeper();
  other->Add(theirs.pid);
  const Child child = Sleeper();
  guard_->Add(child.pid);
  const nanoseconds begin = SinceStart();
  guard_->SetDeadline(begin + milliseconds(200));
  guard_->SetDeadline(begin + std::chrono::hours(1));
  other->SetDeadline(begin + milliseconds(250));
  ExpectKilled(theirs);
  guard_->Remove(child.pid);
  Finish();
  ExpectAlive(child);
}

TEST_F(GuardTest, KillsNothingWithoutADeadline) {
  const Child child = Sleeper();
  kill(guard_->pid(), SIGSTOP);
  guard_->Add(child.pid);
  guard_->SetDeadline(kLongAgo);
  guard_->SetDeadline(kNever);
  guard_->Remove(child.pid);
  kill(guard_->pid(), SIGCONT);
  Finish();
  ExpectAlive(child);
}

TEST_F(GuardTest, KeepsRunningAfterADeadline) {
  const Child first = Sleeper();
  guard_->Add(first.pid);
  guard_->SetDeadline(kLongAgo);
  ExpectKilled(first);
  guard_->Remove(first.pid);
  const Child second = Sleeper();
  guard_->Add(second.pid);
  guard_->SetDeadline(SinceStart() + milliseconds(1));
  ExpectKilled(second);
  guard_->Remove(second.pid);
  const Child third = Sleeper();
  guard_->Add(third.pid);
  guard_.reset();
  ExpectKilled(third);
}

TEST_F(GuardTest, TheSuccessorOfAKilledGuardKnowsTheDeadline) {
  const Child child = Sleeper();
  const pid_t first = guard_->pid();
  kill(first, SIGSTOP);
  guard_->Add(child.pid);
  guard_->SetDeadline(kLongAgo);
  kill(first, SIGKILL);
  RunUntilReplaced(first);
  ExpectKilled(child);
}

}  // namespace
}  // namespace attune::gang

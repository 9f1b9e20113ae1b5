#include "executor/processes/guard.h"

#include <signal.h>

#include <functional>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

class GuardTest : public testing::Test {
 protected:
  GuardTest() : guard_(std::move(Guard::Start(loop_).value())) {}

  // A process that nothing but the guard would end with us.
  Child Sleeper() {
    auto child = Spawn({.program = "/bin/sleep",
                        .argv = {"sleep", "1000"},
                        .environment = {},
                        .dies_with_parent = false});
    EXPECT_TRUE(child.ok());
    return std::move(child.value());
  }

  // Runs the loop until another guard is there.
  void RunUntilReplaced(pid_t pid) {
    Loop::Subscription next;
    std::function<void()> look = [&] {
      if (guard_->pid() != pid) return loop_.Quit();
      next = loop_.After(std::chrono::milliseconds(1), look);
    };
    next = loop_.After({}, look);
    loop_.Run();
  }

  Loop loop_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(GuardTest, GroupsItWasToldOfEndWithItsHostsConnection) {
  const Child child = Sleeper();
  guard_->Add(child.pid);
  guard_.reset();
  EXPECT_TRUE(WaitForEnd(child.pidfd.get()));
  EXPECT_EQ(Reap(child.pidfd.get())->signal, SIGKILL);
}

TEST_F(GuardTest, GroupsThatWereRemovedAreLeftAlone) {
  const Child kept = Sleeper();
  const Child removed = Sleeper();
  guard_->Add(removed.pid);
  guard_->Add(kept.pid);
  guard_->Remove(removed.pid);
  guard_.reset();
  EXPECT_TRUE(WaitForEnd(kept.pidfd.get()));
  Reap(kept.pidfd.get());
  EXPECT_FALSE(Reap(removed.pidfd.get()));
  kill(removed.pid, SIGKILL);
  EXPECT_TRUE(WaitForEnd(removed.pidfd.get()));
  Reap(removed.pidfd.get());
}

TEST_F(GuardTest, SuccessorOfAKilledGuardKnowsTheGroups) {
  const Child child = Sleeper();
  guard_->Add(child.pid);
  const pid_t first = guard_->pid();
  kill(first, SIGKILL);
  RunUntilReplaced(first);
  guard_.reset();
  EXPECT_TRUE(WaitForEnd(child.pidfd.get()));
  EXPECT_EQ(Reap(child.pidfd.get())->signal, SIGKILL);
}

}  // namespace
}  // namespace attune::gang

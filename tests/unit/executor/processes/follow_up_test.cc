#include "executor/processes/follow_up.h"

#include <signal.h>
#include <unistd.h>

#include "executor/processes/environment.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

// A process that runs until it is killed.
Child Sleeper() {
  auto child = Spawn(
      {.program = "/bin/sleep", .argv = {"sleep", "1000"}, .environment = ProgramEnvironment({})});
  EXPECT_TRUE(child.ok());
  return std::move(child.value());
}

TEST(FollowUp, RunsWhenTheOtherProcessHasEnded) {
  const TempDir dir;
  const Child first = Sleeper();
  const auto follow = StartAfterExit(first.pidfd.get(), "/bin/sh",
                                     {"-c", "echo $1 > $0", dir.path() / "file", "two words"});
  ASSERT_TRUE(follow.ok()) << follow.error().message;
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "file"));
  kill(first.pid, SIGKILL);
  ASSERT_TRUE(WaitForEnd(follow->pidfd.get()));
  EXPECT_EQ(ReadFile(dir.path() / "file"), "two words\n");
  EXPECT_TRUE(Reap(follow->pidfd.get())->ok());
  EXPECT_TRUE(WaitForEnd(first.pidfd.get()));
  Reap(first.pidfd.get());
}

TEST(FollowUp, IgnoresTheSignalsThatEndAService) {
  const TempDir dir;
  const Child first = Sleeper();
  const auto follow =
      StartAfterExit(first.pidfd.get(), "/bin/sh", {"-c", "echo > $0", dir.path() / "file"});
  ASSERT_TRUE(follow.ok());
  // SIGHUP, SIGINT and SIGTERM, as bits.
  const std::string status = "/proc/" + std::to_string(follow->pid) + "/status";
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (ReadFile(status).find("SigIgn:\t0000000000004003") == std::string::npos)
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << ReadFile(status);
  kill(follow->pid, SIGTERM);
  kill(first.pid, SIGKILL);
  ASSERT_TRUE(WaitForEnd(follow->pidfd.get()));
  EXPECT_TRUE(Reap(follow->pidfd.get())->ok());
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "file"));
  EXPECT_TRUE(WaitForEnd(first.pidfd.get()));
  Reap(first.pidfd.get());
}

}  // namespace
}  // namespace attune::gang

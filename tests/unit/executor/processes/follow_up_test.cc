#include "executor/processes/follow_up.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

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

std::string StatusOf(pid_t pid) { return ReadFile("/proc/" + std::to_string(pid) + "/status"); }

// Returns whether the process ignores all these signals. It may ignore more, because a process
// inherits the ignored signals of the process that started the tests.
bool IgnoresAll(pid_t pid, std::initializer_list<int> signals) {
  const std::string status = StatusOf(pid);
  const std::string_view label = "SigIgn:\t";
  const size_t start = status.find(label);
  if (start == std::string::npos) return false;
  const uint64_t ignored = std::stoull(status.substr(start + label.size()), nullptr, 16);
  return std::ranges::all_of(signals,
                             [&](int signal) { return (ignored >> (signal - 1) & 1) != 0; });
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
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!IgnoresAll(follow->pid, {SIGHUP, SIGINT, SIGTERM}))
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << StatusOf(follow->pid);
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

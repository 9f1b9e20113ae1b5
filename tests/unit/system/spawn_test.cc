#include "system/spawn.h"

#include <fcntl.h>
#include <signal.h>

#include "tests/unit/executor/harness.h"

namespace attune {
namespace {

using testing::HasSubstr;

TEST(FindProgram, NameIsLookedUpInPath) {
  EXPECT_EQ(FindProgram("sh", "/tmp", "/nowhere:/bin").value(), "/bin/sh");
  EXPECT_THAT(FindProgram("no-such-program", "/tmp", "/bin").error(),
              HasSubstr("is not in PATH (/bin)"));
}

TEST(FindProgram, PathIsRelativeToTheWorkingDirectory) {
  EXPECT_EQ(FindProgram("./sh", "/bin", "").value(), "/bin/sh");
  EXPECT_EQ(FindProgram("/bin/sh", "/tmp", "").value(), "/bin/sh");
  EXPECT_THAT(FindProgram("./tmp", "/", "").error(), HasSubstr("is not a file"));
}

TEST(Spawn, IgnoredAndBlockedSignalsAreNotInherited) {
  const TempDir dir;
  const auto log = OpenLog(dir.path() / "log");
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto ignored = signal(SIGPIPE, SIG_IGN);
  const auto child = Spawn({.program = "/bin/grep",
                            .argv = {"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"},
                            .environment = {},
                            .output_fd = log.value().get()});
  signal(SIGPIPE, ignored);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child.ok()) << child.error();
  ASSERT_TRUE(WaitForEnd(child.value().pidfd.get()));
  EXPECT_TRUE(Reap(child.value().pidfd.get())->ok());
  unsigned long long blocked_there = 0;
  unsigned long long ignored_there = 0;
  ASSERT_EQ(sscanf(ReadFile(dir.path() / "log").c_str(), "SigBlk: %llx SigIgn: %llx",
                   &blocked_there, &ignored_there),
            2);
  // Signals 32 and 33 are the C library's own; whoever runs this test may have left them ignored.
  constexpr unsigned long long kReserved = 3ULL << 31;
  EXPECT_EQ(blocked_there, 0U);
  EXPECT_EQ(ignored_there & ~kReserved, 0U);
}

TEST(Spawn, StartsWithoutACgroupWhereItCannotStartInIt) {
  const TempDir dir;
  const UniqueFd no_cgroup(open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 2; ++i) {  // the second one without a word
    const auto child = Spawn(
        {.program = "/bin/true", .argv = {"true"}, .environment = {}, .cgroup = no_cgroup.get()});
    ASSERT_TRUE(child.ok()) << child.error();
    ASSERT_TRUE(WaitForEnd(child.value().pidfd.get()));
    EXPECT_TRUE(Reap(child.value().pidfd.get())->ok());
  }
}

TEST(Spawn, FailedExecIsToldAndLeavesNoChild) {
  const auto child = Spawn({.program = "/nowhere/at/all", .argv = {"all"}, .environment = {}});
  ASSERT_FALSE(child.ok());
  EXPECT_THAT(child.error(), HasSubstr("cannot start /nowhere/at/all"));
}

}  // namespace
}  // namespace attune

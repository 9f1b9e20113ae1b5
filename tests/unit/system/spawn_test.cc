#include "system/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/result.h"
#include "system/files.h"
#include "system/private_files.h"
#include "system/unique_fd.h"
#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

constexpr int kEndPatienceMs = 20'000;

// How the child ended.
ExitStatus WaitFor(const Child& child) {
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, kEndPatienceMs), 1);
  return Reap(child.pidfd.get()).value();
}

UniqueFd NewFile(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

TEST(FindProgram, LooksUpANameInPath) {
  EXPECT_EQ(FindProgram("sh", "/tmp", "/nowhere:/bin").value(), "/bin/sh");
  EXPECT_EQ(FindProgram("no-such-program", "/tmp", "/bin").error().code, ErrorCode::kNotFound);
}

TEST(FindProgram, DistinguishesInaccessibleFromAbsent) {
  const testing::ScratchFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  const Error program = FindProgram("./loop/train", folder.path(), "").error();
  EXPECT_EQ(program.code, ErrorCode::kInvalid);
  EXPECT_THAT(program.message, ::testing::HasSubstr(std::strerror(ELOOP)));
  EXPECT_THAT(FindProgram("sh", folder / "loop", "").error().message,
              ::testing::HasSubstr(std::strerror(ELOOP)));
}

TEST(FindProgram, ResolvesPathsInTheWorkingDirectory) {
  EXPECT_EQ(FindProgram("./sh", "/bin", "").value(), "/bin/sh");
  EXPECT_EQ(FindProgram("/bin/sh", "/tmp", "").value(), "/bin/sh");
  EXPECT_EQ(FindProgram("./tmp", "/", "").error().code, ErrorCode::kInvalid) << "it is a folder";
}

TEST(Spawn, DoesNotInheritIgnoredOrBlockedSignals) {
  const testing::ScratchFolder folder;
  const UniqueFd log = NewFile(folder / "log");
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto ignored = signal(SIGPIPE, SIG_IGN);
  const auto child = Spawn({.program = "/bin/grep",
                            .argv = {"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"},
                            .environment = {},
                            .output_fd = log.get()});
  signal(SIGPIPE, ignored);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_TRUE(WaitFor(*child).ok());
  unsigned long long blocked_there = 0;
  unsigned long long ignored_there = 0;
  ASSERT_EQ(sscanf(ReadWhole(folder / "log")->c_str(), "SigBlk: %llx SigIgn: %llx", &blocked_there,
                   &ignored_there),
            2);
  // The C library uses signals 32 and 33, and the parent of this test may ignore them.
  constexpr unsigned long long kReserved = 3ULL << 31;
  EXPECT_EQ(blocked_there, 0U);
  EXPECT_EQ(ignored_there & ~kReserved, 0U);
}

TEST(Spawn, RestoresTheUmaskThatTheProcessHadBefore) {
  const testing::ScratchFolder folder;
  const UniqueFd log = NewFile(folder / "log");
  umask(0027);
  KeepFilesPrivate();
  KeepFilesPrivate();
  const auto child = Spawn({.program = "/bin/sh",
                            .argv = {"sh", "-c", "umask"},
                            .environment = {},
                            .output_fd = log.get()});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_TRUE(WaitFor(*child).ok());
  EXPECT_EQ(ReadWord(folder / "log").value(), "0027");
  EXPECT_EQ(umask(0022), 0077u);
}

TEST(Spawn, WritesOutputAndErrorsToDifferentFiles) {
  const testing::ScratchFolder folder;
  const UniqueFd out = NewFile(folder / "out");
  const UniqueFd err = NewFile(folder / "err");
  const auto child = Spawn({.program = "/bin/sh",
                            .argv = {"sh", "-c", "echo one; echo two >&2; exit 3"},
                            .environment = {},
                            .output_fd = out.get(),
                            .error_fd = err.get()});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_EQ(WaitFor(*child).exit_code, 3);
  EXPECT_EQ(ReadWord(folder / "out").value(), "one");
  EXPECT_EQ(ReadWord(folder / "err").value(), "two");
}

TEST(Spawn, FallsBackToTheCallersCgroupAndReportsIt) {
  const testing::ScratchFolder folder;
  const UniqueFd no_cgroup(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto child = Spawn(
      {.program = "/bin/true", .argv = {"true"}, .environment = {}, .cgroup = no_cgroup.get()});
  ASSERT_TRUE(child.ok()) << child.error().message;
  EXPECT_NE(child->cgroup_error, 0);
  EXPECT_TRUE(WaitFor(*child).ok());
}

TEST(Spawn, ReportsAFailedExecAndLeavesNoChild) {
  const auto child = Spawn({.program = "/nowhere/at/all", .argv = {"all"}, .environment = {}});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace attune

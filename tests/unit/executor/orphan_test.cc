#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "executor/gang/spawn.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

// A process that hosts a gang of two, with a child of each rank, and dies without a word.
class Orphans : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd writer(ends[1]);
    auto host = Spawn({.program = ATTUNE_TEST_GANG_HOST,
                       .argv = {"host", dir_.path(), "2", GetParam(), "grandchild", "progress:0",
                                "0/report:1", "hang"},
                       .environment = ProgramEnvironment({}),
                       .output_fd = writer.get()});
    ASSERT_TRUE(host.ok()) << host.error();
    host_ = std::move(host.value());
    output_.reset(fdopen(ends[0], "r"));
  }

  std::string NextLine() {
    std::array<char, 256> line{};
    return fgets(line.data(), line.size(), output_.get()) ? line.data() : "";
  }

  struct CloseFile {
    void operator()(FILE* file) const { fclose(file); }
  };

  TempDir dir_;
  Child host_;
  std::unique_ptr<FILE, CloseFile> output_;
};

TEST_P(Orphans, NoneIsLeftWhenTheHostIsKilled) {
  std::istringstream started(NextLine());
  std::string word;
  std::vector<pid_t> pids(2);
  started >> word >> pids[0] >> pids[1];
  ASSERT_EQ(word, "started");
  ASSERT_EQ(NextLine(), "reported\n");
  const AttemptId attempt{.sweep = 1, .trial = 0, .attempt = 1};
  pids.push_back(
      NumberAfter(ReadFile(RankLog(Folders(dir_.path()).Attempt(attempt), 0)), "grandchild"));

  std::vector<UniqueFd> pidfds;
  for (const pid_t pid : pids) {
    ASSERT_GT(pid, 1);
    pidfds.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_TRUE(pidfds.back());
  }
  kill(host_.pid, SIGKILL);
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(WaitForEnd(pidfd.get()));
  EXPECT_TRUE(WaitForEnd(host_.pidfd.get()));
  EXPECT_EQ(Reap(host_.pidfd.get())->signal, SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(SpawnedAndForked, Orphans,
                         testing::Values(ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER));

}  // namespace
}  // namespace attune::gang

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

class LeavingOrphans : public GangFixture {
 protected:
  static bool IsGone(pid_t pid) { return pid > 1 && kill(pid, 0) != 0; }
};

TEST_F(LeavingOrphans, WhatLeftTheGangsGroupAndSessionGoesWithIt) {
  const GangSpec spec = Script("setsid sleep 1000 & echo orphan $!");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_TRUE(IsGone(NumberAfter(Log(spec), "orphan"))) << Log(spec);
}

TEST_F(LeavingOrphans, WhatARankForkedAndLetGoGoesWithIt) {
  for (const char* worker : {ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER}) {
    const GangSpec spec = Spec({worker, "daemon"});
    EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
    EXPECT_TRUE(IsGone(NumberAfter(Log(spec), "daemon"))) << Log(spec);
  }
}

TEST_F(LeavingOrphans, ThoseOfAnotherGangAreLeftAlone) {
  const GangSpec other = Script("(setsid sleep 1000 & echo orphan $!); echo ready; sleep 1000");
  supervisor_->Run(other);
  pid_t orphan = 0;
  while (orphan == 0 && !HasFailure()) {
    ASSERT_EQ(Run(Script("true")).outcome, Outcome::kFinished);
    if (Log(other).find("ready") != std::string::npos) orphan = NumberAfter(Log(other), "orphan");
  }
  ASSERT_EQ(Run(Script("setsid true")).outcome, Outcome::kFinished);
  EXPECT_EQ(kill(orphan, 0), 0);
  supervisor_->Cancel(other.attempt, CancelReason::kUnwanted);
  WaitForEnded(other);
  EXPECT_TRUE(IsGone(orphan));
}

TEST_F(LeavingOrphans, ThoseThatHaveEndedAreReaped) {
  const GangSpec spec = Script("setsid sleep 0 & orphan=$!; wait; setsid true & echo orphan $!");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  // One that ends just after the sweep is found by the next one.
  while (!IsGone(NumberAfter(Log(spec), "orphan")) && !HasFailure()) Run(Script("true"));
}

INSTANTIATE_TEST_SUITE_P(SpawnedAndForked, Orphans,
                         testing::Values(ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER));

}  // namespace
}  // namespace attune::gang

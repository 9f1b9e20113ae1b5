#include "base/utf8.h"
#include "tests/unit/executor/agent/machine_fixture.h"

namespace attune::agent {
namespace {

class MachineHealthTest : public MachineTest {
 protected:
  void SetProblem(const std::string& problem) {
    machine_.OnHealth({.problem = problem, .disk_free_bytes = 7, .memory_free_bytes = 8});
    Step();
  }
  // The problems that were sent since the last call.
  std::vector<std::string> Problems() {
    for (int i = 0; i < 3; ++i) FinishWrite();
    std::vector<std::string> problems;
    for (const auto& message : TakeWritten(v1::FromExecutor::kHealth))
      problems.push_back(message.health().problem());
    return problems;
  }
};

TEST_F(MachineHealthTest, SendsNothingWhileTheHostIsHealthy) {
  SetProblem("");
  GetWelcomed();
  SetProblem("");
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(MachineHealthTest, SendsAProblemOnceAfterTheWelcome) {
  SetProblem("its disk is full");
  EXPECT_THAT(Problems(), IsEmpty()) << "before the Welcome";
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre("its disk is full"));
  SetProblem("its disk is full");
  PassTimeWriting(seconds(20));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(MachineHealthTest, SendsEachChange) {
  GetWelcomed();
  SetProblem("its disk is full");
  EXPECT_THAT(Problems(), ElementsAre("its disk is full"));
  SetProblem("its GPU 2 is lost");
  EXPECT_THAT(Problems(), ElementsAre("its GPU 2 is lost"));
  SetProblem("");
  EXPECT_THAT(Problems(), ElementsAre(""));
}

TEST_F(MachineHealthTest, SendsOnlyTheLastOfManyChanges) {
  GetWelcomed();
  Report(0, 1);  // a message is being written
  SetProblem("its disk is full");
  SetProblem("");
  SetProblem("its GPU 2 is lost");
  EXPECT_THAT(Problems(), ElementsAre("its GPU 2 is lost"));
}

TEST_F(MachineHealthTest, ResendsAProblemAndItsEndAfterAReconnect) {
  SetProblem("its disk is full");
  GetWelcomed();
  Problems();
  Break();
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre("its disk is full"));
  Break();
  SetProblem("");
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre("")) << "the server may have it in its log";
}

TEST_F(MachineHealthTest, HeartbeatsCarryFreeDiskAndMemory) {
  SetProblem("");
  GetWelcomed();
  PassTimeWriting(kBeat);
  const auto beats = TakeWritten(v1::FromExecutor::kHeartbeat);
  ASSERT_FALSE(beats.empty());
  EXPECT_EQ(beats.front().heartbeat().disk_free_bytes(), 7u);
  EXPECT_EQ(beats.front().heartbeat().memory_free_bytes(), 8u);
}

TEST_F(MachineHealthTest, AnInvalidUtf8PathDoesNotBreakTheConnection) {
  SetProblem("its disk (/\xff) is full");
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre(ValidUtf8("its disk (/\xff) is full")));
}

}  // namespace
}  // namespace attune::agent

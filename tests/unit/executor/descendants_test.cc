#include "executor/gang/descendants.h"

#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/gang/socket_folder.h"
#include "system/unix_sockets.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class DescendantsTest : public GangFixture {};

TEST_F(DescendantsTest, ADescendantSpeaksForTheRank) {
  GangSpec spec = PlainWorker({"below", "join:0/1", "claim", "ask:1", "verdict"});
  supervisor_->Run(spec);
  const auto report = facts_.Wait<Report>(spec.attempt);
  ASSERT_TRUE(report);
  supervisor_->SetVerdict(spec.attempt, {.step = report->step, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(DescendantsTest, ADescendantSpeaksForItsRankInALargerGang) {
  const GangSpec spec =
      PlainWorker({"below", "0/join:0/2", "1/join:1/2", "claim", "0/rendezvous:7", "1/read"}, 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 1), HasSubstr(R"("port":7)"));
}

TEST_F(DescendantsTest, RanksOfALauncherHaveItsNumbers) {
  const GangSpec spec = PlainWorker({"below", "join:1/2", "claim", "progress:1", "done"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const std::string log = Log(spec, 0);
  EXPECT_THAT(log, HasSubstr(R"("rank":1,"world_size":2,"local_rank":1,"local_world_size":2)"));
  EXPECT_EQ(facts_.Count<FirstStep>(spec.attempt), 0) << "rank 0 of the launcher speaks";
}

TEST_F(DescendantsTest, AnErrorOfAnyRankOfALauncherFailsTheAttempt) {
  const Failure failure =
      RunToFailure(PlainWorker({"below", "join:1/2", "claim", "error:no green", "exit:1"}));
  EXPECT_THAT(failure.message, AllOf(HasSubstr("rank 1 "), EndsWith(": no green")));
}

TEST_F(DescendantsTest, AnExitReasonOfALaunchersRankIsTheCause) {
  const Failure failure =
      RunToFailure(PlainWorker({"below", "join:1/2", "leaving:bad config", "join:0/2", "claim",
                                "lost:it is gone", "exit:1"}));
  EXPECT_THAT(failure.message, AllOf(StartsWith("rank 0: rank 1 "), EndsWith(": bad config")));
}

TEST_F(DescendantsTest, RefusesASecondProcessForTheSameRankAndNamesTheFirst) {
  // The first has claimed rank 0 and keeps its connection while the second tries.
  const GangSpec spec = PlainWorker({"join:0/1", "claim", "below", "join:0/1", "claim"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const std::string log = Log(spec, 0);
  EXPECT_THAT(log, HasSubstr(R"({"type":"claimed"})"));
  EXPECT_THAT(log, HasSubstr(R"("refused")"));
  EXPECT_THAT(log, HasSubstr("process " + std::to_string(Pids(spec)[0]) + " "));
}

TEST_F(DescendantsTest, AProcessThatTrainsKeepsItsRank) {
  const GangSpec spec = PlainWorker({"progress:1", "join:0/1", "claim"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 0), HasSubstr(R"("refused")"));
}

TEST_F(DescendantsTest, RefusesALauncherInALargerGang) {
  const GangSpec spec = PlainWorker({"0/join:1/4"}, 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 0), HasSubstr("resources.workers: 1"));
}

TEST_F(DescendantsTest, FailsIfALaunchersRankExitsSilentlyWhileAnotherWaits) {
  StartSupervisor({.timing = {.successor_grace = std::chrono::milliseconds(20)}});
  const Failure failure =
      RunToFailure(PlainWorker({"below", "visit:1/2", "join:0/2", "claim", "waiting:1", "hang"}));
  EXPECT_EQ(failure.rank, 0);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("rank 1 "), HasSubstr("at step ")));
}

TEST_F(DescendantsTest, ARankNumberIsNotLeftWhileAProgramHasIt) {
  StartSupervisor({.timing = {.successor_grace = std::chrono::milliseconds(0)}});
  const Ended ended = Run(PlainWorker(
      {"below", "visit:1/2", "lodge:1/2", "visit:1/2", "join:0/2", "claim", "waiting:1"}));
  EXPECT_EQ(ended.outcome, Outcome::kFinished) << ended.failure.value_or(Failure{}).message;
}

TEST_F(DescendantsTest, FailsIfAWrappedProgramExitsWhileAnotherRankWaits) {
  StartSupervisor({.timing = {.successor_grace = std::chrono::milliseconds(20)}});
  const Failure failure =
      RunToFailure(PlainWorker({"1/wrapped", "1/join:1/2", "1/exit:0", "0/waiting:1", "hang"}, 2));
  EXPECT_EQ(failure.rank, 1);
}

TEST_F(DescendantsTest, AWaitingRankGetsTheVerdictOfAProgramThatFinishedTheStep) {
  const GangSpec spec = PlainWorker({"0/wrapped", "0/join:0/2", "0/claim", "0/progress:2",
                                     "0/exit:0", "1/waiting:0", "1/read", "1/progress:2"},
                                    2);
  supervisor_->Run(spec);
  EXPECT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
  EXPECT_THAT(Log(spec, 1), HasSubstr(R"("action":"continue")"));
  supervisor_->Cancel(spec.attempt, CancelReason::kFailedElsewhere);
  WaitForEnded(spec);
}

TEST_F(DescendantsTest, RefusesAJoinOutsideTheWorldSize) {
  const GangSpec spec = PlainWorker({"join:1/1"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 0), AllOf(HasSubstr(R"("refused")"), HasSubstr("WORLD_SIZE")));
}

TEST_F(DescendantsTest, RefusesAClaimBeforeTheJoin) {
  const GangSpec spec = PlainWorker({"connect", "claim"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 0), HasSubstr(R"("refused")"));
}

TEST_F(DescendantsTest, RemovesTheSocketWithTheGang) {
  GangSpec spec = PlainWorker({"env:ATTUNE_CHANNEL"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const std::string log = Log(spec, 0);
  const size_t begin = log.find("/tmp/attune-" + std::to_string(geteuid()) + "-");
  ASSERT_NE(begin, std::string::npos) << log;
  const std::filesystem::path socket = log.substr(begin, log.find('\n', begin) - begin);
  const auto mode = std::filesystem::status(socket.parent_path()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
  supervisor_.reset();  // waits until the gang is destroyed, which may be a moment after its end
  EXPECT_FALSE(std::filesystem::exists(socket.parent_path()));
}

// An executor in another container has another view of process numbers, so only the lock counts.
TEST(SocketFolderTest, RemovesOnlyFoldersThatNoExecutorHolds) {
  const TempDir parent;
  const auto dead = parent.path() / ("attune-" + std::to_string(geteuid()) + "-abcdef");
  std::filesystem::create_directories(dead);
  const Result<SocketFolder> first = SocketFolder::Make(parent.path());
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(std::filesystem::exists(dead));
  const Result<SocketFolder> second = SocketFolder::Make(parent.path());
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(std::filesystem::exists(first->path()));
  EXPECT_NE(first->path(), second->path());
}

TEST(SocketFolderTest, ExecutorsThatStartAtOnceKeepTheirFolders) {
  const TempDir parent;
  std::vector<std::thread> executors;
  std::mutex mutex;
  std::vector<SocketFolder> folders;
  for (int i = 0; i < 16; ++i)
    executors.emplace_back([&] {
      Result<SocketFolder> folder = SocketFolder::Make(parent.path());
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(folder.ok());
      if (folder.ok()) folders.push_back(*std::move(folder));
    });
  for (std::thread& executor : executors) executor.join();
  for (const SocketFolder& folder : folders) EXPECT_TRUE(std::filesystem::exists(folder.path()));
}

TEST(SocketFolderTest, ReturnedSocketsGetANewPath) {
  const TempDir parent;
  Result<SocketFolder> folder = SocketFolder::Make(parent.path());
  ASSERT_TRUE(folder.ok());
  Result<PathSocket> first = folder->Take();
  ASSERT_TRUE(first.ok());
  const std::filesystem::path old = first->path;
  const Result<UniqueFd> waiting = ConnectToPath(old);
  ASSERT_TRUE(waiting.ok());

  folder->Return(std::move(*first));
  EXPECT_EQ(ConnectToPath(old).error().code, ErrorCode::kNotFound);
  char byte = 0;
  EXPECT_LE(recv(waiting->get(), &byte, 1, 0), 0) << "the connection is closed";

  const Result<PathSocket> second = folder->Take();
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->path, old);
  EXPECT_EQ(accept(second->listener.get(), nullptr, nullptr), -1) << "nobody waits";
  EXPECT_TRUE(ConnectToPath(second->path).ok());
}

}  // namespace
}  // namespace attune::gang

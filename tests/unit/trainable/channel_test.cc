// The worker channel from the side of a rank (docs/reference/worker-channel.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "system/unique_fd.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/trainable/process.h"
#include "trainable/channel/channel.h"

namespace attune::inline sdk::trainable::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The silences in ms that the heartbeats of a rank announced.
std::vector<std::int64_t> Silences(const std::vector<nlohmann::json>& messages) {
  std::vector<std::int64_t> silences;
  for (const auto& message : messages) {
    if (message["type"] == "heartbeat") silences.push_back(message["silence_ms"]);
  }
  return silences;
}

TEST(WorkerChannel, BothRanksLeaveAtTheStepOfTheVerdict) {
  FakeGang gang(2, {{"milestone", 3}});
  gang.RelayRendezvous();
  for (int step = 1; step <= 3; ++step) {
    const auto report = gang.Await(0, "report");
    EXPECT_EQ(report["step"], step);
    EXPECT_EQ(report["metrics"]["ranks"], 2);
    EXPECT_GE(report["seconds"], 0);
  }
  gang.Verdict(3, "continue", 5);
  EXPECT_EQ(gang.Await(0, "report")["step"], 4);
  EXPECT_EQ(gang.Await(0, "report")["step"], 5);
  gang.Verdict(5, "stop");

  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_FALSE(gang.Await(rank, "done").is_null());
    EXPECT_EQ(gang.Wait(rank), 0);
    EXPECT_THAT(gang.Output(), HasSubstr("left: rank " + std::to_string(rank) + ", step 5"));
  }
}

TEST(WorkerChannel, EveryRankReportsProgressFromStepZeroOn) {
  FakeGang gang(2, {{"max_step", 2}});
  gang.RelayRendezvous();
  while (gang.Await(0, "report")["step"] != 2) {
  }
  gang.Verdict(2, "stop");
  gang.Await(0, "done");
  gang.Await(1, "done");
  EXPECT_THAT(Types(gang.received(1)), ElementsAre("progress", "progress", "progress", "done"));
  std::int64_t step = 0;
  for (const auto& message : gang.received(1)) {
    if (message["type"] != "progress") continue;
    EXPECT_EQ(message["step"], step++);
  }
  EXPECT_THAT(Types(gang.received(0)), ElementsAre("rendezvous", "progress", "report", "progress",
                                                   "report", "progress", "done"));
}

TEST(WorkerChannel, AYieldMakesEveryRankLeaveAtTheSameStepBeforeAnyMilestone) {
  FakeGang gang(2, {{"milestone", 1'000'000}});
  gang.RelayRendezvous();
  EXPECT_EQ(gang.Await(0, "report")["waits"], false);
  gang.Send(0, {{"type", "yield"}});
  const std::int64_t step = gang.AwaitWaiting()["step"];
  gang.Verdict(step, "pause");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(gang.Wait(rank), 0);
    EXPECT_THAT(gang.Output(), HasSubstr("left: rank " + std::to_string(rank) + ", step " +
                                         std::to_string(step) + "\n"));
  }
}

TEST(WorkerChannel, AContinueVerdictEndsAYield) {
  FakeGang gang(1, {{"milestone", 1'000'000}});
  gang.Send(0, {{"type", "yield"}});
  const std::int64_t step = gang.AwaitWaiting()["step"];
  gang.Verdict(step, "continue", 1'000'000);
  const auto next = gang.Await(0, "report");
  EXPECT_EQ(next["step"], step + 1);
  EXPECT_EQ(next["waits"], false);
}

TEST(WorkerChannel, AVerdictAnswersAYieldThatCameWhileRankZeroWaited) {
  FakeGang gang(1, {{"milestone", 2}});
  EXPECT_EQ(gang.AwaitWaiting()["step"], 2);
  gang.Send(0, {{"type", "yield"}});
  gang.Verdict(2, "continue", 4);
  EXPECT_EQ(gang.AwaitWaiting()["step"], 4);
}

constexpr std::int64_t kMinuteMs = 60'000;

TEST(WorkerChannel, SetupAndSavingMayBeSilentForLonger) {
  std::string folder = ::testing::TempDir() + "silence-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  FakeGang gang(1, {{"milestone", 1}, {"checkpoint_dir", folder}});
  gang.Await(0, "report");
  const auto silences = Silences(gang.received(0));
  ASSERT_GE(silences.size(), 3u);
  EXPECT_THAT(std::vector(silences.begin(), silences.begin() + 3),
              ElementsAre(30 * kMinuteMs, 0, 30 * kMinuteMs));
  fs::remove_all(folder);
}

TEST(WorkerChannel, HeartbeatsAreRareUnlessTheyAnnounceASilence) {
  FakeGang gang(1, {{"milestone", 1}, {"config", {{"mode", "beats"}}}});
  gang.Await(0, "report");
  const auto silences = Silences(gang.received(0));
  ASSERT_GE(silences.size(), 3u);
  EXPECT_LT(silences.size(), 10u) << "of a thousand calls";
  EXPECT_THAT(std::vector(silences.begin(), silences.begin() + 3),
              ElementsAre(30 * kMinuteMs, 120 * kMinuteMs, 0));
}

TEST(WorkerChannel, RefusesASilenceLongerThanAWeek) {
  FakeGang gang(1, {{"config", {{"mode", "week"}}}});
  EXPECT_THAT(gang.Await(0, "error")["message"], HasSubstr("604800001 ms"));
  EXPECT_THAT(Silences(gang.received(0)), ElementsAre(30 * kMinuteMs, 7 * 24 * 60 * kMinuteMs));
}

TEST(WorkerChannel, ADownloadAllowsTheSilenceOfSetup) {
  const attune::testing::ScratchFolder folder;
  std::ofstream(folder / "hello") << "hello\n";
  FakeGang gang(1, {{"config", {{"folder", folder.path()}}}}, {{"GANG_PROGRAM_FORM", "files"}});
  ASSERT_FALSE(gang.Await(0, "report").is_null()) << gang.Output();
  EXPECT_THAT(Silences(gang.received(0)), ElementsAre(1'800'000, 1'800'000));
  EXPECT_TRUE(fs::exists(folder / "points.csv"));
  EXPECT_TRUE(fs::exists(folder / "prepared"));
}

TEST(WorkerChannel, ForwardsSendHeartbeats) {
  FakeGang gang(1, {{"milestone", 1}, {"config", {{"mode", "busy"}}}});
  gang.Await(0, "report");
  EXPECT_GE(Silences(gang.received(0)).size(),
            4u);  // of Setup(), after Setup(), and of each second
}

TEST(WorkerChannel, ATrialThatStopsItselfSavesWithItsLastReportWithoutWaiting) {
  std::string folder = ::testing::TempDir() + "stop-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  // A milestone at exactly that step, or no milestone.
  for (const int milestone : {3, 0}) {
    FakeGang gang(2, {{"config", {{"mode", "stops"}}},
                      {"milestone", milestone},
                      {"max_step", 9},
                      {"attempt", milestone + 1},
                      {"checkpoint_dir", folder}});
    gang.RelayRendezvous();
    EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 3);
    const auto report = gang.Await(0, "report");
    EXPECT_EQ(report["step"], 3);
    EXPECT_EQ(report["waits"], false);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_FALSE(gang.Await(rank, "done").is_null());
      EXPECT_EQ(gang.Wait(rank), 0);
    }
  }
  fs::remove_all(folder);
}

TEST(WorkerChannel, ASingleRankNeedsNoRendezvous) {
  FakeGang gang(1, {{"max_step", 1}});
  gang.Await(0, "report");
  gang.Verdict(1, "stop");
  EXPECT_EQ(gang.Wait(0), 0);
}

TEST(WorkerChannel, AReportBeforeTheMilestoneDoesNotWait) {
  FakeGang gang(1, {{"milestone", 2000}});
  for (int step = 1; step <= 2000; ++step) ASSERT_EQ(gang.Await(0, "report")["step"], step);
}

TEST(WorkerChannel, TrainingDoesNotWaitForAnExecutorThatDoesNotRead) {
  auto [executor, rank] = ChannelPair();
  Channel channel(std::move(rank), nullptr);
  const std::string line(1000, 'x');
  constexpr int kLines = 5000;  // far more than a socket buffers
  for (int i = 0; i < kLines; ++i) channel.Send(line);
  EXPECT_FALSE(channel.Flush(std::chrono::milliseconds(1)));
  auto flushed = std::async(std::launch::async, [&] { channel.Flush(); });

  std::size_t received = 0;
  std::vector<char> chunk(1 << 16);
  const auto read_until = [&](std::size_t bytes) {
    while (received < bytes) received += recv(executor.get(), chunk.data(), chunk.size(), 0);
  };
  read_until(kLines * line.size() / 2);
  EXPECT_EQ(flushed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  read_until(kLines * line.size());
  flushed.get();
  EXPECT_TRUE(channel.Flush(kPatience));
}

std::string ReadAvailable(const UniqueFd& socket) {
  std::string bytes(1 << 16, '\0');
  const ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(std::max<ssize_t>(count, 0));
  return bytes;
}

TEST(WorkerChannel, UrgentLinesTakeCollectedLinesAlong) {
  auto [executor, rank] = ChannelPair();
  Channel channel(std::move(rank), nullptr);
  channel.Send("a\n");
  channel.SendSoon("b\n");
  channel.SendSoon("c\n");
  channel.Send("d\n");
  EXPECT_EQ(ReadAvailable(executor), "a\nb\nc\nd\n");
  channel.SendSoon("e\n");
  EXPECT_TRUE(channel.Flush(kPatience));
  EXPECT_EQ(ReadAvailable(executor), "e\n");
}

TEST(WorkerChannel, CollectedLinesAreSentAfterATime) {
  auto [executor, rank] = ChannelPair();
  Channel channel(std::move(rank), nullptr);
  constexpr int kLines = 20'000;  // more than a socket buffers
  std::jthread sender([&channel = channel] {
    for (int i = 0; i < kLines; ++i) channel.SendSoon(std::to_string(i) + "\n");
  });
  std::string expected, received;
  for (int i = 0; i < kLines; ++i) expected += std::to_string(i) + "\n";
  std::vector<char> chunk(1 << 16);
  while (received.size() < expected.size()) {
    received.append(chunk.data(), recv(executor.get(), chunk.data(), chunk.size(), 0));
  }
  EXPECT_EQ(received, expected);
}

TEST(WorkerChannel, ATrialThatExitsHasSentItsLastReport) {
  FakeGang gang(1, {{"config", {{"mode", "exits"}}}});
  while (gang.Await(0, "report")["step"] != 99) {
  }
  EXPECT_EQ(gang.Wait(0), 0);
}

TEST(WorkerChannel, AnExceptionBecomesAnErrorAndExitCode1) {
  FakeGang gang(2, {{"config", {{"mode", "throws"}}}});
  gang.RelayRendezvous();
  EXPECT_EQ(gang.Await(1, "error")["message"], "a teapot");
  EXPECT_EQ(gang.Wait(1), 1);
  EXPECT_THAT(gang.Output(), HasSubstr("rank 1 failed: a teapot"));
  // The peer does not hang, and reports that it is not at fault.
  const auto victim = gang.Await(0, "error");
  EXPECT_EQ(victim["lost_peer"], true);
  EXPECT_EQ(gang.Wait(0), 1);
}

TEST(WorkerChannel, AConnectionErrorOfTheProgramIsNotALostPeer) {
  FakeGang gang(2, {{"config", {{"mode", "refused"}}}});
  gang.RelayRendezvous();
  const auto error = gang.Await(1, "error");
  EXPECT_EQ(error["message"], "S3: Connection refused");
  EXPECT_EQ(error["lost_peer"], false);
}

TEST(WorkerChannel, ARankReportsALostPeerThatWasKilledInBackward) {
  FakeGang gang(2, {{"config", {{"mode", "train"}}}});
  gang.RelayRendezvous();
  gang.Await(0, "report");
  kill(gang.pid(1), SIGKILL);
  EXPECT_EQ(gang.Await(0, "error")["lost_peer"], true);
}

TEST(WorkerChannel, AFailingRankReportsItsErrorBeforeDestructorsRun) {
  FakeGang gang(1, {{"config", {{"mode", "blocks"}}}});
  EXPECT_EQ(gang.Await(0, "error")["message"], "the cause");
  EXPECT_EQ(gang.Wait(0), 1);
  EXPECT_THAT(gang.Output(), Not(HasSubstr("destroyed")));
}

TEST(WorkerChannel, ChildrenOfARankDoNotInheritItsChannel) {
  FakeGang gang(1, {});
  gang.Await(0, "report");
  EXPECT_THAT(gang.Output(), HasSubstr("channel: unset"));
}

TEST(WorkerChannel, AProgramStartedByARankRunsByHand) {
  FakeGang gang(1, {{"config", {{"mode", "nested"}}}});
  EXPECT_FALSE(gang.Await(0, "report").is_null());
  EXPECT_THAT(gang.Output(), HasSubstr("after step 1"));
  EXPECT_THAT(gang.Output(), HasSubstr("shell said 0"));
}

TEST(WorkerChannel, AChannelVariableWithoutASocketIsAnError) {
  const Ended ended = RunByHand({}, {{"ATTUNE_CHANNEL_FD", "1"}});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("ATTUNE_CHANNEL_FD: \"1\""));
}

TEST(WorkerChannel, RanksEndWithTheirExecutor) {
  FakeGang gang(2, {{"config", {{"mode", "hangs"}}}});
  gang.RelayRendezvous();
  gang.Vanish();
  EXPECT_EQ(gang.Wait(0), 1);
  EXPECT_EQ(gang.Wait(1), 1);
  EXPECT_THAT(gang.Output(), HasSubstr("executor"));
}

TEST(WorkerChannel, AMalformedVerdictIsAnErrorThatQuotesIt) {
  FakeGang gang(1, {{"milestone", 1}});
  gang.Await(0, "report");
  gang.Send(0, nlohmann::json::array({"nonsense"}));
  EXPECT_THAT(gang.Await(0, "error")["message"], HasSubstr("nonsense"));
  EXPECT_EQ(gang.Wait(0), 1);
}

TEST(WorkerChannel, ATrainingFunctionMayReturn) {
  FakeGang gang(2, {}, {{"GANG_PROGRAM_FORM", "function"}});
  gang.RelayRendezvous();
  for (int step = 1; step <= 3; ++step) EXPECT_EQ(gang.Await(0, "report")["step"], step);
  EXPECT_FALSE(gang.Await(0, "done").is_null());
  EXPECT_EQ(gang.Wait(0), 0);
  EXPECT_EQ(gang.Wait(1), 0);
}

TEST(WorkerChannel, AProgramForOneProcessRefusesTwoWorkers) {
  FakeGang gang(2, {}, {{"GANG_PROGRAM_FORM", "lonely"}});
  EXPECT_THAT(gang.Await(0, "error")["message"], HasSubstr("resources.workers: 1"));
  EXPECT_EQ(gang.Wait(0), 1);
}

TEST(WorkerChannel, WarnsOfUnreadParameters) {
  FakeGang gang(1, {{"max_step", 1}, {"config", {{"mode", "count"}, {"wdith", 3}}}});
  gang.Await(0, "report");
  gang.Verdict(1, "stop");
  EXPECT_EQ(gang.Wait(0), 0);
  EXPECT_THAT(gang.Output(), HasSubstr("attune: config.wdith "));
  EXPECT_THAT(gang.Output(), Not(HasSubstr("config.mode")));
}

TEST(WorkerChannel, ArgumentsOfTheCommandReachTheProgram) {
  FakeGang gang(1, {});
  EXPECT_EQ(gang.Await(0, "report")["metrics"]["args"], 2);
}

TEST(WorkerChannel, AnInitialisationHookAffectsTheProcessGroup) {
  FakeGang gang(2, {{"config", {{"mode", "hook"}}},
                    {"local_world_size", 1},
                    {"address", "127.0.0.1"},
                    {"seed", 7}});
  // Ranks on several hosts, so that Gloo uses the interface that the hook sets.
  EXPECT_EQ(gang.Await(0, "rendezvous")["host"], "127.0.0.1");
  EXPECT_THAT(gang.Output(), HasSubstr("hook: rank 0 of 2, local 0 of 1, on cpu, seed 7, args 2"));
}

TEST(WorkerChannel, AThrowingInitialisationHookFailsTheRankBeforeItJoins) {
  FakeGang gang(2, {{"config", {{"mode", "hook_fails"}}}});
  EXPECT_EQ(gang.Await(1, "error")["message"], "no interface eth7");
  EXPECT_EQ(gang.Wait(1), 1);
}

TEST(WorkerChannel, NamesADeviceThatTheBuildDoesNotSupport) {
  FakeGang gang(1, {{"device", "cuda:0"}});
  EXPECT_THAT(gang.Await(0, "error")["message"], HasSubstr("cuda:0"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing

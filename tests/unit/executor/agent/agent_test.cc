#include "executor/agent/agent.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/version.h"
#include "executor/agent/messages.h"
#include "json/parse.h"
#include "tests/unit/executor/agent/fake_server.h"

namespace attune::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class AgentTest : public testing::Test {
 protected:
  AgentOptions Options() {
    return {.channel = server_.Channel(),
            .token = "a token",
            .name = "host-a",
            .instance = "1234",
            .address = "10.0.0.1",
            .resources = {.cpus = 4, .gpus = 1, .memory_bytes = 1 << 30},
            .data_dir = dir_.path()};
  }

  void StartAgent() {
    auto agent = Agent::Start(Options());
    ASSERT_TRUE(agent.ok()) << agent.error().message;
    agent_ = std::move(agent.value());
  }

  // Without a server, an agent ends at once.
  void TearDown() override { server_.Drop(); }

  // An attempt with one rank that runs these commands.
  v1::Assignment Assignment(uint32_t trial, uint64_t epoch, const std::vector<std::string>& words) {
    v1::Assignment assignment;
    assignment.mutable_attempt()->set_sweep(1);
    assignment.mutable_attempt()->set_trial(trial);
    assignment.mutable_attempt()->set_attempt(1);
    assignment.mutable_attempt()->set_epoch(epoch);
    assignment.mutable_program()->add_command(ATTUNE_TEST_PLAIN_WORKER);
    for (const std::string& word : words) assignment.mutable_program()->add_command(word);
    assignment.set_world_size(1);
    assignment.add_ranks()->set_cpus(1);
    assignment.set_milestone(1000);
    return assignment;
  }

  pid_t StartedPid() {
    const v1::Fact fact = server_.NextFact(v1::Fact::kStarted);
    return fact.started().pids_size() == 1 ? static_cast<pid_t>(fact.started().pids(0)) : 0;
  }

  v1::Ended NextEnded() { return server_.NextFact(v1::Fact::kEnded).ended(); }

  gang::TempDir dir_;
  FakeServer server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentTest, SendsAHello) {
  StartAgent();
  const v1::Hello hello = server_.NextHello();
  EXPECT_EQ(hello.token(), "a token");
  EXPECT_EQ(hello.name(), "host-a");
  EXPECT_EQ(hello.instance(), "1234");
  EXPECT_EQ(hello.address(), "10.0.0.1");
  EXPECT_EQ(hello.resources().cpus(), 4u);
  EXPECT_FALSE(hello.version().empty());
  EXPECT_EQ(hello.format(), kFormat);
}

TEST_F(AgentTest, RecordsTheEnvironmentOfAStartedGang) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(1, 7, {"exit:0"})});
  const v1::Fact fact = server_.NextFact(v1::Fact::kRecorded);
  EXPECT_EQ(fact.attempt().sweep(), 1u);
  EXPECT_GT(fact.seq(), 0u);
  const auto record = ParseJson<nlohmann::json>(fact.recorded().record());
  EXPECT_EQ(record["attune"], kVersion);
}

TEST_F(AgentTest, SendsADiskProblemAndTheFreeSpace) {
  AgentOptions options = Options();
  options.health.disk_free_bytes = uint64_t{1} << 60;
  auto agent = Agent::Start(std::move(options));
  ASSERT_TRUE(agent.ok()) << agent.error().message;
  agent_ = std::move(agent.value());
  server_.Welcome(60'000, 100);
  EXPECT_THAT(server_.NextHealth().problem(),
              testing::AllOf(HasSubstr("disk"), HasSubstr(dir_.path().string()),
                             testing::EndsWith(" 1073741824.0 GiB")));
  const v1::Heartbeat heartbeat = server_.NextHeartbeat();
  EXPECT_GT(heartbeat.disk_free_bytes(), 0u);
  EXPECT_GT(heartbeat.memory_free_bytes(), 0u);
}

TEST_F(AgentTest, SendsAFullDiskBeforeTheEndOfItsGang) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(7, 1, {"full:no space left", "exit:1"})});
  EXPECT_THAT(server_.NextHealth().problem(), HasSubstr("full"));
  const v1::Ended ended = NextEnded();
  EXPECT_EQ(ended.failure().kind(), v1::Failure::HOST);
  EXPECT_EQ(ended.failure().message(), "rank 0: no space left");
}

TEST_F(AgentTest, HelloHasThePortForCheckpointsIfTheHostIsReachable) {
  StartAgent();
  EXPECT_EQ(server_.NextHello().pieces_port(), 0u);
  agent_.reset();
  AgentOptions options = Options();
  options.host = {.address = "127.0.0.1", .interface = "lo"};
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok()) << agent.error().message;
  agent_ = std::move(agent.value());
  const v1::Hello hello = server_.NextHello();
  EXPECT_GT(hello.pieces_port(), 0u);
  EXPECT_THAT(hello.pieces_key(), SizeIs(32));
}

TEST_F(AgentTest, RunsAWantedGangAndNumbersItsFacts) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(7, 1, {"progress:0", "report:1"})});
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::FINISHED);

  std::vector<v1::Fact> facts = server_.Facts();
  for (size_t i = 0; i < facts.size(); ++i) {
    EXPECT_EQ(facts[i].seq(), i + 1);
    EXPECT_EQ(facts[i].attempt().trial(), 7u);
  }
  std::erase_if(facts, [](const v1::Fact& fact) { return fact.has_recorded(); });
  ASSERT_THAT(facts, SizeIs(4));
  EXPECT_TRUE(facts[0].has_started());
  EXPECT_TRUE(facts[1].has_first_step());
  EXPECT_EQ(facts[2].report().metrics(0).name(), "loss");
}

TEST_F(AgentTest, ResendsFactsAfterAReconnectUntilAcknowledged) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(9, 1, {"hang"})});
  server_.NextFact(v1::Fact::kRecorded);  // the sweep's next record comes seconds later
  server_.SetDesired({});
  const uint64_t first = server_.NextFact(v1::Fact::kEnded).seq() + 1;
  server_.SetDesired({Assignment(0, 2, {"report:1", "report:2"})});
  NextEnded();
  server_.Acknowledge(first + 1);
  server_.Drop();
  server_.Welcome();
  NextEnded();
  std::vector<uint64_t> seqs;
  for (const v1::Fact& fact : server_.Facts()) {
    if (fact.seq() >= first) seqs.push_back(fact.seq() - first);
  }
  EXPECT_THAT(seqs, testing::AnyOf(ElementsAre(0, 1, 2, 3, 2, 3),
                                   // the acknowledgement may be lost with the connection
                                   ElementsAre(0, 1, 2, 3, 0, 1, 2, 3)));
}

TEST_F(AgentTest, GangsOutliveAConnection) {
  StartAgent();
  server_.Welcome();
  const v1::Assignment assignment = Assignment(3, 5, {"hang"});
  server_.SetDesired({assignment});
  const pid_t pid = StartedPid();
  server_.Drop();
  server_.Welcome();
  server_.SetDesired({assignment, Assignment(4, 6, {})});
  EXPECT_EQ(server_.NextFact(v1::Fact::kEnded).attempt().trial(), 4u);
  EXPECT_EQ(kill(pid, 0), 0);
}

TEST_F(AgentTest, CancelsAGangThatIsNoLongerWanted) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  StartedPid();
  server_.SetDesired({});
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::CANCELLED);
}

TEST_F(AgentTest, DoesNotRestartAnAttemptThatHasEnded) {
  StartAgent();
  server_.Welcome();
  const v1::Assignment ended = Assignment(0, 1, {"exit:1"});
  server_.SetDesired({ended});
  EXPECT_EQ(NextEnded().failure().exit_code(), 1);
  server_.SetDesired({ended, Assignment(1, 1, {})});
  NextEnded();
  for (const v1::Fact& fact : server_.Facts()) {
    if (fact.has_started() && fact.seq() > 2) {
      EXPECT_EQ(fact.attempt().trial(), 1u);
    }
  }
}

TEST_F(AgentTest, AHigherEpochReplacesTheOldGangWhenItIsGone) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  StartedPid();
  server_.SetDesired({Assignment(0, 2, {})});
  const v1::Fact old = server_.NextFact(v1::Fact::kEnded);
  EXPECT_EQ(old.attempt().epoch(), 1u);
  EXPECT_EQ(old.ended().outcome(), v1::Ended::CANCELLED);
  EXPECT_EQ(server_.NextFact(v1::Fact::kStarted).attempt().epoch(), 2u);
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::FINISHED);
}

TEST_F(AgentTest, VerdictReachesTheGang) {
  StartAgent();
  server_.Welcome();
  v1::Assignment assignment = Assignment(0, 1, {"report:3", "verdict", "report:4", "verdict"});
  assignment.set_milestone(3);
  server_.SetDesired({assignment});
  server_.NextFact(v1::Fact::kReport);
  assignment.set_verdict_step(3);
  assignment.set_milestone(4);
  server_.SetDesired({assignment});
  server_.NextFact(v1::Fact::kReport);
  assignment.set_verdict_step(4);
  assignment.set_action(v1::STOP);
  server_.SetDesired({assignment});
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::FINISHED);
}

TEST_F(AgentTest, YieldReachesTheGangOnce) {
  StartAgent();
  server_.Welcome();
  v1::Assignment assignment = Assignment(0, 1, {"report:1", "read", "ask:2", "verdict", "exit:1"});
  server_.SetDesired({assignment});
  EXPECT_FALSE(server_.NextFact(v1::Fact::kReport).report().waits());
  assignment.set_yield(true);
  server_.SetDesired({assignment});
  const v1::Assignment other = Assignment(1, 2, {"hang"});
  server_.SetDesired({assignment, other});
  EXPECT_TRUE(server_.NextFact(v1::Fact::kReport).report().waits());
  assignment.set_yield(false);
  assignment.set_verdict_step(2);
  assignment.set_action(v1::PAUSE);
  server_.SetDesired({assignment, other});
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::FINISHED);
}

TEST_F(AgentTest, DeliversAVerdictMadeWhileDisconnected) {
  StartAgent();
  server_.Welcome();
  v1::Assignment assignment = Assignment(0, 1, {"report:3", "verdict", "exit:1"});
  assignment.set_milestone(3);
  server_.SetDesired({assignment});
  server_.NextFact(v1::Fact::kReport);
  server_.Drop();
  server_.Welcome();
  assignment.set_verdict_step(3);
  assignment.set_action(v1::PAUSE);
  server_.SetDesired({assignment});
  EXPECT_EQ(NextEnded().outcome(), v1::Ended::FINISHED);
}

TEST_F(AgentTest, DeletesACheckpointAndReportsIt) {
  StartAgent();
  server_.Welcome();
  const std::filesystem::path folder =
      gang::Folders(dir_.path()).Checkpoints({.sweep = 1, .trial = 3}) / "step-9-attempt-2";
  std::filesystem::create_directories(folder);
  v1::ToExecutor message;
  message.mutable_desired()->set_revision(1);
  v1::CheckpointRemoval& removal = *message.mutable_desired()->add_removals();
  removal.set_sweep(1);
  removal.set_trial(3);
  removal.set_attempt(2);
  removal.set_step(9);
  removal.set_path(folder);
  server_.Send(message);
  const v1::Fact fact = server_.NextFact(v1::Fact::kRemoved);
  EXPECT_FALSE(fact.has_attempt());
  EXPECT_EQ(fact.removed().sweep(), 1u);
  EXPECT_EQ(fact.removed().trial(), 3u);
  EXPECT_EQ(fact.removed().attempt(), 2u);
  EXPECT_EQ(fact.removed().step(), 9);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(AgentTest, TearsGangsDownWhenTheLeaseExpires) {
  StartAgent();
  server_.Welcome(/*lease_ttl_ms=*/500);
  const v1::Assignment assignment = Assignment(0, 1, {"hang"});
  server_.SetDesired({assignment});
  StartedPid();
  server_.Welcome();  // after the reconnect, an ended attempt stays ended
  const v1::Ended ended = NextEnded();
  EXPECT_EQ(ended.outcome(), v1::Ended::FAILED);
  EXPECT_EQ(ended.failure().kind(), v1::Failure::LEASE);
  server_.SetDesired({assignment, Assignment(1, 1, {})});
  EXPECT_EQ(server_.NextFact(v1::Fact::kStarted).attempt().trial(), 1u);
}

TEST_F(AgentTest, TheLeaseCountsFromTheTimeOfTheAnsweredHeartbeat) {
  StartAgent();
  server_.Welcome(/*lease_ttl_ms=*/200, /*heartbeat_ms=*/10);
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  StartedPid();
  const v1::Heartbeat first = server_.NextHeartbeat();
  // The server keeps answering it, as answers wait for an executor that was stopped.
  std::optional<v1::FromExecutor> next;
  do {
    server_.Answer(first);
    next = server_.Next([](const v1::FromExecutor& message) {
      return message.has_heartbeat() || message.has_hello() ? std::optional(message) : std::nullopt;
    });
    ASSERT_TRUE(next);
  } while (next->has_heartbeat());
  server_.SendWelcome();
  EXPECT_EQ(NextEnded().failure().kind(), v1::Failure::LEASE);
}

TEST_F(AgentTest, HeartbeatsAndAnswersRenewTheLease) {
  constexpr std::chrono::milliseconds kLease{600};
  StartAgent();
  server_.Welcome(kLease.count(), /*heartbeat_ms=*/20);
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  const auto begin = std::chrono::steady_clock::now();
  auto last = begin;
  while (last < begin + 2 * kLease) {
    const auto heartbeat = server_.Next([](const v1::FromExecutor& message) {
      return message.has_heartbeat() || message.has_hello() ? std::optional(message) : std::nullopt;
    });
    ASSERT_TRUE(heartbeat);
    const auto now = std::chrono::steady_clock::now();
    if (now - last > kLease / 2) GTEST_SKIP() << "this machine stood still for half a lease";
    last = now;
    ASSERT_TRUE(heartbeat->has_heartbeat()) << "the lease was lost";
    server_.Answer(heartbeat->heartbeat());
  }
  for (const v1::Fact& fact : server_.Facts()) EXPECT_FALSE(fact.has_ended());
}

TEST_F(AgentTest, TearsDownAndEndsWhenSuperseded) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  const pid_t pid = StartedPid();
  server_.Refuse(v1::Refusal::SUPERSEDED, "host-a runs elsewhere");
  const AgentExit exit = agent_->Wait();
  EXPECT_EQ(exit.reason, AgentExit::Reason::kSuperseded);
  EXPECT_EQ(exit.message, "host-a runs elsewhere");
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(AgentTest, EndsOnABadToken) {
  StartAgent();
  server_.NextHello();
  server_.Refuse(v1::Refusal::BAD_TOKEN, "unknown token");
  EXPECT_EQ(agent_->Wait().reason, AgentExit::Reason::kRefused);
}

TEST_F(AgentTest, RetriesABusyServer) {
  StartAgent();
  server_.NextHello();
  server_.Refuse(v1::Refusal::BUSY, "disk full");
  EXPECT_EQ(server_.Welcome().name(), "host-a");
}

TEST_F(AgentTest, ReadsLogsOnRequest) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(4, 1, {"print:hello from rank 0"})});
  NextEnded();
  v1::ToExecutor request;
  request.mutable_log_request()->set_request(99);
  request.mutable_log_request()->mutable_attempt()->set_sweep(1);
  request.mutable_log_request()->mutable_attempt()->set_trial(4);
  request.mutable_log_request()->mutable_attempt()->set_attempt(1);
  request.mutable_log_request()->set_offset(-7);
  request.mutable_log_request()->set_limit_bytes(100);
  server_.Send(request);
  const v1::LogChunk chunk = server_.NextLogChunk();
  EXPECT_EQ(chunk.request(), 99u);
  EXPECT_EQ(chunk.data(), "rank 0\n");
  EXPECT_EQ(chunk.offset() + 7, chunk.file_bytes());

  request.mutable_log_request()->set_rank(5);
  server_.Send(request);
  EXPECT_THAT(server_.NextLogChunk().error(), HasSubstr("rank-5.log"));
}

TEST_F(AgentTest, ReadsOnlyCheckpointsOnRequest) {
  StartAgent();
  server_.Welcome();
  const auto folder = dir_.path() / "sweeps/s1/trials/4/checkpoints/step-3-attempt-1";
  std::filesystem::create_directories(folder / "state");
  gang::WriteFile(folder / "state" / "model.bin", "0123456789");
  gang::WriteFile(dir_.path() / "sweeps/s1/trials/4/checkpoints/secret", "secret");
  const auto ask = [&](const std::string& name, const std::string& file) {
    v1::ToExecutor message;
    v1::CheckpointRequest& request = *message.mutable_checkpoint_request();
    request.set_request(7);
    request.set_sweep(1);
    request.set_trial(4);
    request.set_folder(name);
    request.set_file(file);
    request.set_offset(2);
    request.set_limit_bytes(3);
    server_.Send(message);
    return server_.NextPiece();
  };
  const v1::CheckpointPiece piece = ask("step-3-attempt-1", "state/model.bin");
  EXPECT_EQ(piece.error(), "");
  EXPECT_EQ(piece.token(), "a token");
  EXPECT_EQ(piece.request(), 7u);
  EXPECT_EQ(piece.data(), "234");
  EXPECT_EQ(piece.file_bytes(), 10u);
  const auto refuses = [&](const std::string& name, const std::string& file,
                           const std::string& named) {
    const v1::CheckpointPiece refusal = ask(name, file);
    EXPECT_EQ(refusal.data(), "") << name << " " << file;
    EXPECT_THAT(refusal.error(), HasSubstr(named)) << name << " " << file;
  };
  refuses("step-3-attempt-1", "absent", "absent");
  refuses("step-3-attempt-1", "../secret", "../secret");
  refuses("..", "checkpoints/secret", "\"..\"");
  refuses("step-3-attempt-1/state", "model.bin", "\"step-3-attempt-1/state\"");
  refuses("", "secret", "\"\"");
}

TEST_F(AgentTest, AnInvalidAssignmentFailsToStart) {
  StartAgent();
  server_.Welcome();
  v1::Assignment assignment = Assignment(0, 1, {});
  assignment.add_config()->set_name("lr");
  server_.SetDesired({assignment});
  const v1::Ended ended = NextEnded();
  EXPECT_EQ(ended.failure().kind(), v1::Failure::START);
  EXPECT_EQ(ended.failure().rank(), -1);
  EXPECT_THAT(ended.failure().message(), HasSubstr("'lr'"));
}

TEST_F(AgentTest, StopReportsTheEndOfItsGangs) {
  StartAgent();
  server_.Welcome();
  server_.SetDesired({Assignment(0, 1, {"hang"})});
  StartedPid();
  agent_->Stop();
  const v1::Fact ended = server_.NextFact(v1::Fact::kEnded);
  EXPECT_EQ(ended.ended().outcome(), v1::Ended::FAILED);
  EXPECT_EQ(ended.ended().failure().kind(), v1::Failure::LEASE) << "not the trial's failure";
  server_.Acknowledge(ended.seq());
  EXPECT_EQ(agent_->Wait().reason, AgentExit::Reason::kStopped);
}

TEST_F(AgentTest, StopSaysGoodbyeWithoutGangs) {
  StartAgent();
  server_.Welcome(/*lease_ttl_ms=*/60'000, /*heartbeat_ms=*/10);
  const auto is_heartbeat = [](const v1::FromExecutor& message) {
    return message.has_heartbeat() ? std::optional(true) : std::nullopt;
  };
  ASSERT_TRUE(server_.Next(is_heartbeat));  // the welcome has arrived
  agent_->Stop();
  EXPECT_TRUE(server_.Next([](const v1::FromExecutor& message) {
    return message.has_goodbye() ? std::optional(true) : std::nullopt;
  }));
  EXPECT_EQ(agent_->Wait().reason, AgentExit::Reason::kStopped);
}

TEST_F(AgentTest, StopsWithoutAServer) {
  AgentOptions options = Options();
  options.channel = nullptr;
  options.target = "127.0.0.1:1";  // nobody listens there
  auto agent = Agent::Start(std::move(options));
  ASSERT_TRUE(agent.ok());
  agent.value()->Stop();
  EXPECT_EQ(agent.value()->Wait().reason, AgentExit::Reason::kStopped);
}

TEST_F(AgentTest, RefusesASecondExecutorOfTheSameName) {
  StartAgent();
  const auto second = Agent::Start(Options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("'host-a'"));
  agent_.reset();
  EXPECT_TRUE(Agent::Start(Options()).ok());
}

}  // namespace
}  // namespace attune::agent

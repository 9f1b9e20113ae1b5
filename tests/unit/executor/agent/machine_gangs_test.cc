#include "tests/unit/executor/agent/machine_fixture.h"

namespace attune::agent {
namespace {

// ---- gangs

TEST_F(MachineTest, GangsOutliveAConnection) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Break();
  PassTime(Backoff::kFirst);
  GetWelcomed();
  revision_ = 0;  // a new connection restarts the numbering
  Receive(MakeDesired({MakeAssignment(0)}));
  EXPECT_THAT(started_, SizeIs(1));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(MachineTest, VerdictsAndYieldsArePassedOn) {
  GetWelcomed();
  v1::Assignment assignment = MakeAssignment(0);
  assignment.set_verdict_step(3);
  assignment.set_yield(true);
  Receive(MakeDesired({assignment}));
  EXPECT_THAT(verdicts_, ElementsAre(std::pair(Attempt(0), 3)));
  EXPECT_THAT(yielded_, ElementsAre(Attempt(0)));
}

TEST_F(MachineTest, AnInvalidAssignmentFailsAndTheNextStarts) {
  GetWelcomed();
  v1::Assignment odd = MakeAssignment(0);
  odd.add_config()->set_name("lr");
  Receive(MakeDesired({odd, MakeAssignment(1)}));
  EXPECT_THAT(started_, ElementsAre(Attempt(1)));
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(messages[0].facts().facts(0).ended().failure().message(), HasSubstr("'lr'"));
}

TEST_F(MachineTest, ReportsAnUnknownUnwantedAttemptAsEnded) {
  GetWelcomed();
  v1::ToExecutor message = MakeDesired({});
  *message.mutable_desired()->add_unwanted() = MakeAssignment(5).attempt();
  Receive(std::move(message));
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).attempt().trial(), 5u);
  EXPECT_EQ(messages[0].facts().facts(0).ended().outcome(), v1::Ended::CANCELLED);
}

TEST_F(MachineTest, PassesRemovalsOnAndReportsThem) {
  GetWelcomed();
  v1::ToExecutor message = MakeDesired({});
  message.mutable_desired()->add_removals()->set_step(9);
  Receive(std::move(message));
  ASSERT_EQ(removals_.checkpoints.size(), 1);
  machine_.OnRemoved(removals_.checkpoints[0], TimeNow());
  Step();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).removed().step(), 9);
}

TEST_F(MachineTest, DeletesASweepAfterItsGangsEndAndReportsIt) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  v1::ToExecutor message = MakeDesired({});
  auto& deleted = *message.mutable_desired()->mutable_deleted_sweeps();
  AddSweepFiles({Attempt(0).sweep, 5}, deleted);
  AddSweepFiles({77, 6}, deleted);
  Receive(std::move(message));
  EXPECT_THAT(removals_.sweeps, ElementsAre(SweepFiles{77, 6}));
  End(0);
  EXPECT_THAT(removals_.sweeps, ElementsAre(SweepFiles{Attempt(0).sweep, 5}, SweepFiles{77, 6}));

  FinishWrite();
  TakeWritten(v1::FromExecutor::kFacts);
  machine_.OnSweepRemoved(77, TimeNow());
  Step();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).sweep_removed().sweep(), 77u);
}

TEST_F(MachineTest, EachHelloListsTheSweepsWithFilesHere) {
  const auto said = [this] {
    const auto hellos = TakeWritten(v1::FromExecutor::kHello);
    return FromProto(hellos.back().hello().sweeps());
  };
  const auto come_back = [this] {
    Break();
    PassTime(Backoff::kMax);
    GetWelcomed();
  };
  EXPECT_THAT(said(), IsEmpty());
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  End(0);
  come_back();
  EXPECT_THAT(said(), ElementsAre(SweepFiles{Attempt(0).sweep, 0}))
      << "the sweep has run since the first Hello";
  machine_.OnSweepRemoved(Attempt(0).sweep, TimeNow());
  come_back();
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(MachineTest, AHelloListsTheNewestSweepsUpToItsLimit) {
  v1::Hello hello = Hello();
  for (uint64_t sweep = 1; sweep <= kHelloSweepsMax + 1; ++sweep)
    AddSweepFiles({sweep, sweep % 2}, *hello.mutable_sweeps());
  TakeWritten(v1::FromExecutor::kHello);
  Machine machine(hello, gang::Folders("/data"), 1, *this, *this, *this);
  machine.Step(TimeNow());
  const auto hellos = TakeWritten(v1::FromExecutor::kHello);
  const std::vector<SweepFiles> said = FromProto(hellos.at(0).hello().sweeps());
  EXPECT_EQ(said.size(), kHelloSweepsMax);
  EXPECT_EQ(std::ranges::min(said).sweep, 2u);
  EXPECT_LT(hellos.at(0).ByteSizeLong(), size_t{64} << 10);
}

// ---- a restored backup

TEST_F(MachineTest, SendsItsLogPosition) {
  GetWelcomed();
  v1::ToExecutor message = MakeDesired({});
  message.mutable_desired()->set_identity(7);
  message.mutable_desired()->set_log_seq(41);
  message.mutable_desired()->set_server_run(3);
  Receive(std::move(message));
  Break();
  PassTime(Backoff::kMax);
  const v1::Hello hello = TakeWritten(v1::FromExecutor::kHello).back().hello();
  EXPECT_EQ(hello.identity(), 7u);
  EXPECT_EQ(hello.log_seq(), 41u);
  EXPECT_EQ(hello.server_run(), 3u);
}

TEST_F(MachineTest, AnAttemptFromBeforeARestoreRunsOnOrIsReportedAsEnded) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  v1::ToExecutor message = MakeDesired({MakeAssignment(0), MakeAssignment(1)});
  message.mutable_desired()->set_last_epoch(Attempt(1).epoch);
  Receive(std::move(message));
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
  EXPECT_THAT(cancelled_, IsEmpty());
  FinishWrite();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).attempt().trial(), Attempt(1).trial);
  EXPECT_EQ(messages[0].facts().facts(0).ended().outcome(), v1::Ended::CANCELLED);
}

TEST_F(MachineTest, ReportsAnEndAgainThatTheLogHasLost) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  End(0);
  FinishWrite();
  Acknowledge(1);
  v1::ToExecutor message = MakeDesired({MakeAssignment(0)});
  message.mutable_desired()->set_last_epoch(Attempt(0).epoch);
  Receive(std::move(message));
  FinishWrite();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_FALSE(messages.empty());
  EXPECT_EQ(messages.back().facts().facts(0).ended().outcome(), v1::Ended::CANCELLED);
  EXPECT_THAT(started_, SizeIs(1));
}

TEST_F(MachineTest, ReportsAgainIfAGangWaitsForAVerdictOfALostReport) {
  const auto desired = [this](uint64_t identity) {
    v1::ToExecutor message = MakeDesired({MakeAssignment(0), MakeAssignment(1), MakeAssignment(2)});
    message.mutable_desired()->set_identity(identity);
    message.mutable_desired()->set_last_epoch(Attempt(2).epoch);
    return message;
  };
  GetWelcomed();
  v1::ToExecutor first = desired(7);
  first.mutable_desired()->clear_last_epoch();
  Receive(std::move(first));
  ReportAndWait(0, 1);
  ReportAndWait(1, 1);
  ReportAndWait(1, 2);
  End(1);
  ReportAndWait(2, 1);
  Report(2, 2);
  FinishWrite();
  FinishWrite();
  Acknowledge(6);
  TakeWritten(v1::FromExecutor::kFacts);
  Receive(desired(8));
  FinishWrite();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  std::vector<std::pair<uint32_t, int64_t>> reports;
  for (const v1::Fact& fact : messages[0].facts().facts()) {
    if (fact.has_report()) reports.emplace_back(fact.attempt().trial(), fact.report().step());
  }
  EXPECT_THAT(reports, ElementsAre(std::pair(Attempt(0).trial, int64_t{1})));
  Receive(desired(8));
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kFacts), IsEmpty());
}

TEST_F(MachineTest, AGangOfALostSweepEndsBeforeOneOfTheSameNumberStarts) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  v1::Assignment other = MakeAssignment(1);
  other.set_identity(9);
  other.mutable_attempt()->set_epoch(1'000);
  v1::ToExecutor message = MakeDesired({other});
  AddSweepFiles({Attempt(0).sweep, 0}, *message.mutable_desired()->mutable_lost_sweeps());
  Receive(std::move(message));
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kUnwanted)));
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
  EXPECT_THAT(removals_.lost_sweeps, IsEmpty()) << "a gang writes to the folder";
  End(0);
  EXPECT_THAT(started_, SizeIs(2));
}

TEST_F(MachineTest, ReportsAMissingCheckpoint) {
  GetWelcomed();
  v1::CheckpointName checkpoint;
  checkpoint.set_step(9);
  machine_.OnCheckpointGone(checkpoint, TimeNow());
  Step();
  const auto messages = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).removed().step(), 9);
}

TEST_F(MachineTest, ReportsAMissingCheckpointWithTheLogsIdentity) {
  GetWelcomed();
  v1::ToExecutor inventory;
  inventory.mutable_inventory()->add_checkpoints()->set_step(9);
  Receive(std::move(inventory));
  EXPECT_THAT(inventories_, IsEmpty()) << "the answer would be of the earlier log";
  v1::ToExecutor desired = MakeDesired({});
  desired.mutable_desired()->set_identity(7);
  Receive(std::move(desired));
  ASSERT_THAT(inventories_, SizeIs(1));
  machine_.OnCheckpointGone(inventories_[0].checkpoints(0), TimeNow());
  machine_.OnSweepRemoved(4, TimeNow());
  FinishWrite();
  Step();
  const v1::Facts facts = TakeWritten(v1::FromExecutor::kFacts).at(0).facts();
  EXPECT_EQ(facts.facts(0).removed().identity(), 7u);
  EXPECT_EQ(facts.facts(1).sweep_removed().identity(), 7u);
}

// ---- the end

TEST_F(MachineTest, StopSaysGoodbyeFirstAndWaitsForTheLastAcknowledgement) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  machine_.Stop({});
  Step();
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kGoodbye), SizeIs(1));
  FinishWrite();
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaving)));
  End(0);
  FinishWrite();
  EXPECT_EQ(closes_, 0);
  Acknowledge(1);
  EXPECT_EQ(closes_, 1);
  EXPECT_FALSE(machine_.done());
  Closed();
  EXPECT_TRUE(machine_.done());
  EXPECT_EQ(machine_.exit().reason, AgentExit::Reason::kStopped);
}

TEST_F(MachineTest, StopWaitsOnlyBrieflyForAnAcknowledgement) {
  GetWelcomed();
  Report(0, 1);
  FinishWrite();
  machine_.Stop({});
  Step();
  FinishWrite();
  PassTime(kFarewellTimeout - milliseconds(1));
  EXPECT_EQ(closes_, 0);
  PassTime(milliseconds(1));
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, LeaveLetsGangsSaveAndEndsWhenTheirCheckpointsAreNotNeeded) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  machine_.Leave(seconds(20), TimeNow());
  Step();
  const auto goodbyes = TakeWritten(v1::FromExecutor::kGoodbye);
  ASSERT_THAT(goodbyes, SizeIs(1));
  EXPECT_TRUE(goodbyes[0].goodbye().saves());
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeavingSoon)));
  PassTimeWriting(seconds(10));
  v1::Assignment told = MakeAssignment(0);
  told.set_yield(true);
  Receive(MakeDesired({told}));
  EXPECT_THAT(yielded_, ElementsAre(Attempt(0)));
  End(0);
  FinishWrite();
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kGoodbye), IsEmpty())
      << "the server does not know the end yet";
  Acknowledge(1);
  const auto stays = TakeWritten(v1::FromExecutor::kGoodbye);
  ASSERT_THAT(stays, SizeIs(1));
  EXPECT_TRUE(stays[0].goodbye().stays());
  PassTimeWriting(seconds(5));
  EXPECT_EQ(closes_, 0) << "another executor still fetches a checkpoint";
  Release();
  FinishWrite();
  EXPECT_EQ(closes_, 1) << "before the grace is over";
  EXPECT_THAT(cancelled_, SizeIs(1));
}

TEST_F(MachineTest, LeaveEndsAfterTheGrace) {
  GetWelcomed();
  machine_.Leave(seconds(20), TimeNow());
  Step();
  PassTimeWriting(seconds(20) - milliseconds(1));
  EXPECT_EQ(closes_, 0);
  PassTimeWriting(milliseconds(1));
  FinishWrite();
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, LeaveTearsGangsDownAfterTheGrace) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  machine_.Leave(seconds(20), TimeNow());
  Step();
  PassTimeWriting(seconds(20) - milliseconds(1));
  EXPECT_THAT(cancelled_, SizeIs(1));
  PassTimeWriting(milliseconds(1));
  ASSERT_THAT(cancelled_, SizeIs(2));
  EXPECT_EQ(cancelled_.back(), std::pair(Attempt(0), gang::CancelReason::kLeaving));
}

TEST_F(MachineTest, LeaveWithoutGangsAsksAtOnceWhetherItIsNeeded) {
  GetWelcomed();
  machine_.Leave(seconds(20), TimeNow());
  Step();
  EXPECT_TRUE(TakeWritten(v1::FromExecutor::kGoodbye).at(0).goodbye().saves());
  FinishWrite();
  EXPECT_TRUE(TakeWritten(v1::FromExecutor::kGoodbye).at(0).goodbye().stays());
  FinishWrite();
  Release();
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, LeaveStopsWhenTheConnectionBreaks) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  machine_.Leave(seconds(20), TimeNow());
  Step();
  EXPECT_THAT(cancelled_, SizeIs(1));
  Break();
  ASSERT_THAT(cancelled_, SizeIs(2));
  EXPECT_EQ(cancelled_.back().second, gang::CancelReason::kLeaving);
}

TEST_F(MachineTest, StopWithoutAServerEndsAtOnce) {
  machine_.Stop({});
  Step();
  Closed();
  EXPECT_TRUE(machine_.done());
}

TEST_F(MachineTest, StartsNothingAfterStop) {
  GetWelcomed();
  machine_.Stop({});
  Receive(MakeDesired({MakeAssignment(0)}));
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(MachineTest, ExitingGangsLoseTheLeaseToo) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Receive(MakeDesired({}));
  PassTime(kLease);
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kUnwanted),
                                      std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
}

TEST_F(MachineTest, CancelsGangsThatFailedElsewhere) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  v1::ToExecutor without = MakeDesired({});
  *without.mutable_desired()->add_failed_elsewhere() = MakeAssignment(0).attempt();
  Receive(without);
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kFailedElsewhere)));
}

TEST_F(MachineTest, TearsGangsDownAndEndsWhenSuperseded) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Refuse(v1::Refusal::SUPERSEDED);
  Closed();
  // Another process has its slots now, so there is no grace.
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
  EXPECT_FALSE(machine_.done());
  End(0);
  ASSERT_TRUE(machine_.done());
  EXPECT_EQ(machine_.exit().reason, AgentExit::Reason::kSuperseded);
  EXPECT_EQ(machine_.exit().message, "no");
  EXPECT_EQ(connects_, 1);
}

TEST_F(MachineTest, EndsAfterAPermanentRefusal) {
  for (const v1::Refusal::Code code :
       {v1::Refusal::BAD_TOKEN, v1::Refusal::VERSION, v1::Refusal::BAD_HELLO}) {
    Machine machine(Hello(), gang::Folders("/data"), 1, *this, *this, *this);
    machine.Step(TimeNow());
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(code);
    machine.OnMessage(std::move(message), TimeNow());
    machine.OnClosed("", TimeNow());
    machine.Step(TimeNow());
    ASSERT_TRUE(machine.done());
    EXPECT_EQ(machine.exit().reason, AgentExit::Reason::kRefused);
  }
}

TEST_F(MachineTest, TellsRemoteRanksWhereRankZeroListens) {
  GetWelcomed();
  v1::Assignment part = MakeAssignment(0);
  part.set_world_size(2);
  part.mutable_ranks(0)->set_rank(1);
  Receive(MakeDesired({part}));
  EXPECT_THAT(started_, IsEmpty());
  part.mutable_rendezvous()->set_address("10.0.0.3");
  Receive(MakeDesired({part}));
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
  part.mutable_rendezvous()->set_host("10.0.0.3");
  part.mutable_rendezvous()->set_port(4001);
  Receive(MakeDesired({part}));
  EXPECT_THAT(rendezvous_ports_, ElementsAre(4001));
}

}  // namespace
}  // namespace attune::agent

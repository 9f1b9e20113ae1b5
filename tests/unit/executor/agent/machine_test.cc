#include "tests/unit/executor/agent/machine_fixture.h"

namespace attune::agent {
namespace {

// ---- the connection

TEST_F(MachineTest, ConnectsAtOnceAndSendsAHello) {
  EXPECT_EQ(connects_, 1);
  ASSERT_THAT(written_, SizeIs(1));
  EXPECT_EQ(written_[0].hello().name(), "host-a");
}

TEST_F(MachineTest, ClosesAConnectionWithoutAWelcome) {
  FinishWrite();
  PassTime(kWelcomeTimeout - milliseconds(1));
  EXPECT_EQ(closes_, 0);
  PassTime(milliseconds(1));
  EXPECT_EQ(closes_, 1);
  EXPECT_EQ(connects_, 1);  // only after the old connection is gone
  Closed();
  PassTime(Backoff::kFirst);
  EXPECT_EQ(connects_, 2);
}

TEST_F(MachineTest, PausesBetweenConnectionsGrowUntilOneSucceeds) {
  const auto pause = [&] {
    Break();
    const auto begin = now_;
    while (connects_ == 0) PassTime(milliseconds(1));
    connects_ = 0;
    return now_ - begin;
  };
  connects_ = 0;
  for (int i = 0; i < 12; ++i) {
    GetWelcomed();  // a Welcome alone does not reset the pause, because a refusal may follow each
                    // time
    pause();
  }
  EXPECT_GE(pause(), Backoff::kMax / 2);
  GetWelcomed();
  Acknowledge(0);
  EXPECT_LE(pause(), Backoff::kFirst);
}

TEST_F(MachineTest, WritesOneMessageAtATimeAndBatchesFacts) {
  GetWelcomed();
  for (int step = 1; step <= 3; ++step) Report(0, step);
  EXPECT_THAT(SentSeqs(), ElementsAre(1));
  FinishWrite();
  EXPECT_THAT(SentSeqs(), ElementsAre(2, 3));
}

TEST_F(MachineTest, ResendsOnlyUnacknowledgedFactsAfterAReconnect) {
  GetWelcomed();
  for (int step = 1; step <= 3; ++step) {
    Report(0, step);
    FinishWrite();
  }
  Acknowledge(2);
  SentSeqs();
  Break();
  PassTime(Backoff::kFirst);
  GetWelcomed();
  EXPECT_THAT(SentSeqs(), ElementsAre(3));
}

TEST_F(MachineTest, ResendsUnacknowledgedFactsOnTheSameConnection) {
  GetWelcomed();
  Report(0, 1);
  FinishWrite();
  Report(0, 2);
  FinishWrite();
  SentSeqs();
  PassTimeWriting(kResendAfter - milliseconds(1));
  EXPECT_THAT(SentSeqs(), IsEmpty());
  Acknowledge(1);  // an acknowledgement restarts the timeout
  PassTimeWriting(kResendAfter - milliseconds(1));
  EXPECT_THAT(SentSeqs(), IsEmpty());
  PassTimeWriting(milliseconds(1));
  EXPECT_THAT(SentSeqs(), ElementsAre(2));
  Acknowledge(2);
  PassTimeWriting(kResendAfter);
  EXPECT_THAT(SentSeqs(), IsEmpty());
  EXPECT_EQ(connects_, 1);
}

TEST_F(MachineTest, HeartbeatsDoNotQueueBehindUnacknowledgedFacts) {
  GetWelcomed();
  for (int step = 1; step <= 200; ++step) Report(0, step, std::string(64 << 10, 'm'));
  for (int i = 0; i < 400; ++i) FinishWrite();
  size_t bytes = 0;
  for (const auto& message : TakeWritten(v1::FromExecutor::kFacts)) bytes += message.ByteSizeLong();
  EXPECT_LE(bytes, kUnacknowledgedBytesMax + kFactBytesPerMessage + (1 << 10));
  PassTime(kBeat);
  FinishWrite();
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kHeartbeat), SizeIs(1));
}

TEST_F(MachineTest, IsFullUntilFactsAreAcknowledged) {
  GetWelcomed();
  const int enough = 2 + static_cast<int>(kOutboxBytesMax / (1 << 20));
  for (int step = 1; step <= enough; ++step) Report(0, step, std::string(1 << 20, 'm'));
  EXPECT_TRUE(machine_.is_full());
  Acknowledge(static_cast<uint64_t>(enough));
  EXPECT_FALSE(machine_.is_full());
}

TEST_F(MachineTest, RetriesABusyServerWhileGangsRun) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Refuse(v1::Refusal::BUSY);
  Closed();
  PassTime(Backoff::kFirst);
  EXPECT_EQ(connects_, 2);
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(MachineTest, SendsRequestedPiecesOfCheckpoints) {
  GetWelcomed();
  written_.clear();
  v1::ToExecutor message;
  message.mutable_checkpoint_request()->set_request(7);
  Receive(std::move(message));
  EXPECT_THAT(piece_requests_, ElementsAre(7));
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(MachineTest, ReadsLogsOneByOneAndQueuesOnlyTheNewestRequests) {
  GetWelcomed();
  for (uint64_t i = 1; i <= kLogRequestsMax + 2; ++i) AskForLog(i);
  EXPECT_THAT(log_requests_, ElementsAre(1));  // only one log is read at a time
  PassTimeWriting(2 * kBeat);
  EXPECT_FALSE(TakeWritten(v1::FromExecutor::kHeartbeat).empty());
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kLogChunk), IsEmpty());
  for (size_t answered = 0; answered < log_requests_.size(); ++answered) {
    v1::LogChunk chunk;
    chunk.set_request(log_requests_[answered]);
    machine_.OnLog(chunk);
    Step();
    const auto sent = TakeWritten(v1::FromExecutor::kLogChunk);
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].log_chunk().request(), log_requests_[answered]);
    FinishWrite();
  }
  ASSERT_THAT(log_requests_, SizeIs(1 + kLogRequestsMax));
  EXPECT_EQ(log_requests_[1], 3u);  // request 2 was dropped as the oldest in the queue
}

TEST_F(MachineTest, DropsALogThatWasReadForAnEarlierConnection) {
  GetWelcomed();
  AskForLog(1);
  Closed();
  now_ += seconds(60);
  Step();
  GetWelcomed();
  AskForLog(1);
  machine_.OnLog({});
  Step();
  EXPECT_THAT(log_requests_, ElementsAre(1, 1));
  v1::LogChunk chunk;
  chunk.set_data("of this one");
  machine_.OnLog(chunk);
  Step();
  FinishWrite();
  const auto chunks = TakeWritten(v1::FromExecutor::kLogChunk);
  ASSERT_THAT(chunks, SizeIs(1));
  EXPECT_EQ(chunks[0].log_chunk().data(), "of this one");
}

// ---- the lease

TEST_F(MachineTest, RetriesSoonerWhenLessOfTheLeaseIsLeft) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Break();
  for (int i = 0; i < 10; ++i) Closed();  // so that the pauses grow
  milliseconds left{8'000};
  PassTime(kLease - left);
  while (left > seconds(1)) {
    Closed();
    const int before = connects_;
    PassTime(left / 8);
    EXPECT_GT(connects_, before) << left.count() << " ms are left";
    left -= left / 8;
  }
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(MachineTest, AnsweredHeartbeatsRenewTheLeaseWithoutAcknowledgedFacts) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Report(0, 1);
  FinishWrite();
  for (const gang::BootClock::time_point end = now_ + std::chrono::hours(6); now_ < end;) {
    PassTime(milliseconds(500));
    FinishWrite();
    for (const auto& beat : TakeWritten(v1::FromExecutor::kHeartbeat)) {
      Acknowledge(0, beat.heartbeat().time_us());
    }
  }
  EXPECT_THAT(cancelled_, IsEmpty());
  EXPECT_EQ(connects_, 1);
  EXPECT_EQ(closes_, 0);
}

TEST_F(MachineTest, TearsGangsDownWhenTheLeaseExpires) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  FinishWrite();
  PassTime(kLease - milliseconds(1));
  EXPECT_THAT(cancelled_, IsEmpty());
  PassTime(milliseconds(1));
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, SendsAHeartbeatAtOnceAfterALateWelcome) {
  FinishWrite();
  PassTime(kBeat + milliseconds(1));  // this part of the new lease is used already
  Welcome();
  EXPECT_THAT(TakeWritten(v1::FromExecutor::kHeartbeat), SizeIs(1));
}

TEST_F(MachineTest, AnswerToAnOldHeartbeatDoesNotProlongTheLease) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  const int64_t first_us = TimeNow().wall_us;
  for (milliseconds at{0}; at < kLease; at += milliseconds(1000)) {
    PassTime(milliseconds(1000));
    Acknowledge(0, first_us);
  }
  EXPECT_THAT(cancelled_, SizeIs(1));
}

TEST_F(MachineTest, GivesUpAfterItsTimeoutWithoutAMessage) {
  Machine machine(Hello(), gang::Folders("/data"), 1, *this, *this, *this, seconds(600));
  machine.Step(TimeNow());
  machine.OnBroken();
  machine.OnClosed("nobody there", TimeNow());
  now_ += seconds(599);
  machine.Step(TimeNow());  // tries to connect
  EXPECT_FALSE(machine.done());
  v1::ToExecutor welcome;
  welcome.mutable_welcome()->set_lease_ttl_ms(kLease.count());
  machine.OnMessage(welcome, TimeNow());
  now_ += seconds(599);
  machine.Step(TimeNow());
  EXPECT_FALSE(machine.done()) << "the timeout counts from the last message";
  machine.OnBroken();
  machine.OnClosed("gone", TimeNow());
  now_ += seconds(1);
  machine.Step(TimeNow());
  ASSERT_TRUE(machine.done());
  EXPECT_EQ(machine.exit().reason, AgentExit::Reason::kServerLost);
}

TEST_F(MachineTest, AMessageFromBeforeASuspensionStartsNothing) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Suspend(kLease);
  Receive(MakeDesired(
      {MakeAssignment(0), MakeAssignment(1)}));  // it arrived while the host was suspended
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
}

TEST_F(MachineTest, AnEndAfterASuspensionStartsNoOtherGang) {
  GetWelcomed();
  v1::Assignment first = MakeAssignment(0);
  v1::Assignment second = MakeAssignment(1);
  first.mutable_ranks(0)->add_gpus(0);
  second.mutable_ranks(0)->add_gpus(0);
  Receive(MakeDesired({first}));
  Receive(MakeDesired({second}));  // waits for the GPU of the first gang
  Suspend(kLease);
  End(0);
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
}

TEST_F(MachineTest, EachRenewalExtendsTheDeadlineOfGangs) {
  const gang::BootClock::time_point first = now_ + kLease + kDeadlineMarginMax;
  GetWelcomed();
  EXPECT_THAT(deadlines_, ElementsAre(first));
  PassTime(kBeat);
  const auto beats = TakeWritten(v1::FromExecutor::kHeartbeat);
  ASSERT_THAT(beats, SizeIs(1));
  FinishWrite();
  PassTime(seconds(1));
  EXPECT_THAT(deadlines_, SizeIs(1));
  Acknowledge(0, beats[0].heartbeat().time_us());
  EXPECT_THAT(deadlines_, ElementsAre(first, first + kBeat));
}

TEST_F(MachineTest, AShortLeaseHasAShorterMarginToTheDeadline) {
  FinishWrite();
  v1::ToExecutor message;
  message.mutable_welcome()->set_lease_ttl_ms(800);
  Receive(std::move(message));
  EXPECT_THAT(deadlines_, ElementsAre(now_ + milliseconds(900)));
}

TEST_F(MachineTest, TheDeadlineOfALostLeaseStaysUntilTheLastGangEnds) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0), MakeAssignment(1)}));
  Suspend(kLease);
  Step();
  End(0);
  EXPECT_THAT(deadlines_, SizeIs(1));
  End(1);
  ASSERT_THAT(deadlines_, SizeIs(2));
  EXPECT_EQ(deadlines_.back(), Machine::kNever);
}

TEST_F(MachineTest, ALostLeaseWithoutGangsHasNoDeadline) {
  GetWelcomed();
  Suspend(kLease);
  Step();
  EXPECT_EQ(deadlines_.back(), Machine::kNever);
}

TEST_F(MachineTest, AGangKilledByTheGuardIsLostWithTheLease) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Suspend(kLease);
  Fail(0, SIGKILL);  // reported before the machine sees the time
  EXPECT_THAT(FailureKinds(), ElementsAre(v1::Failure::LEASE));
}

TEST_F(MachineTest, AGangKilledByTheGuardIsLostWithTheLeaseEvenIfReportedLate) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Suspend(kLease);
  Step();
  Closed();
  PassTime(Backoff::kFirst);
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(1)}));
  Fail(0, SIGKILL);
  Fail(1, SIGKILL);  // started after the lease was lost
  EXPECT_THAT(FailureKinds(), ElementsAre(v1::Failure::LEASE, v1::Failure::SIGNAL));
}

TEST_F(MachineTest, AFailureWithinTheLeaseKeepsItsKind) {
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(0)}));
  Suspend(kLease - milliseconds(1));
  Fail(0, SIGKILL);
  EXPECT_THAT(FailureKinds(), ElementsAre(v1::Failure::SIGNAL));
}

TEST_F(MachineTest, AWelcomeAfterALostLeaseStartsANewLease) {
  GetWelcomed();
  Suspend(kLease);
  Step();
  Closed();
  PassTime(Backoff::kFirst);
  GetWelcomed();
  Receive(MakeDesired({MakeAssignment(1)}));
  EXPECT_THAT(started_, ElementsAre(Attempt(1)));
  PassTime(kLease - 2 * Backoff::kFirst);
  EXPECT_THAT(cancelled_, IsEmpty());
}

}  // namespace
}  // namespace attune::agent

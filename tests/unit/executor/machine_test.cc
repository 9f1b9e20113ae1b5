#include "executor/agent/machine.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "executor/agent/messages.h"

namespace attune::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr milliseconds kLease{120'000};
constexpr milliseconds kBeat{5'000};

// A machine on a bench: a link, gangs and files that note what is asked of them, and a clock that
// moves when it is told to.
class MachineTest : public testing::Test, public ServerLink, public Gangs, public Files {
 protected:
  MachineTest() : machine_(Hello(), gang::Folders("/data"), 1, *this, *this, *this) { Step(); }

  static v1::Hello Hello() {
    v1::Hello hello;
    hello.set_name("host-a");
    return hello;
  }

  Now At() const { return {now_, microseconds(now_.time_since_epoch()).count()}; }
  void Step() { deadline_ = machine_.Step(At()); }

  // Lets time pass, as a thread would: awake whenever the machine wants to be.
  void Pass(milliseconds span) {
    const BootClock::time_point end = now_ + span;
    while (deadline_ <= end) {
      now_ = std::max(now_, deadline_);
      Step();
      ASSERT_LT(++steps_, 1'000'000) << "it wants to be called again at once, for ever";
    }
    now_ = end;
  }
  // The same, with a network that takes all that is written.
  void PassWriting(milliseconds span) {
    for (const BootClock::time_point end = now_ + span; now_ < end;) {
      Pass(std::min(milliseconds(500), std::chrono::duration_cast<milliseconds>(end - now_)));
      Written();
    }
  }
  void StandStill(milliseconds span) { now_ += span; }  // the host is suspended

  void Written() {
    machine_.OnWritten();
    Step();
  }

  void Receive(v1::ToExecutor message) {
    machine_.OnMessage(std::move(message), At());
    Step();
  }
  void Welcome() {
    v1::ToExecutor message;
    message.mutable_welcome()->set_lease_ttl_ms(kLease.count());
    message.mutable_welcome()->set_heartbeat_ms(kBeat.count());
    Receive(std::move(message));
  }
  void Acknowledge(uint64_t seq, int64_t heartbeat_us = 0) {
    v1::ToExecutor message;
    message.mutable_ack()->set_seq(seq);
    message.mutable_ack()->set_heartbeat_us(heartbeat_us);
    Receive(std::move(message));
  }
  void Refuse(v1::Refusal::Code code) {
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(code);
    message.mutable_refusal()->set_message("no");
    Receive(std::move(message));
  }
  v1::ToExecutor Wanting(const std::vector<v1::Assignment>& assignments) {
    v1::ToExecutor message;
    message.mutable_desired()->set_revision(++revision_);
    for (const v1::Assignment& each : assignments) {
      *message.mutable_desired()->add_assignments() = each;
    }
    return message;
  }
  static v1::Assignment Trial(uint32_t trial) {
    v1::Assignment assignment;
    assignment.mutable_attempt()->set_sweep(1);
    assignment.mutable_attempt()->set_trial(trial);
    assignment.mutable_attempt()->set_attempt(1);
    assignment.mutable_attempt()->set_epoch(trial + 1);
    assignment.mutable_program()->add_command("train");
    assignment.set_world_size(1);
    assignment.add_ranks()->set_cpus(1);
    return assignment;
  }
  static gang::AttemptId Attempt(uint32_t trial) { return FromProto(Trial(trial).attempt()); }

  // Connected, welcomed, with nothing on its way.
  void GetWelcomed() {
    Written();
    Welcome();
  }
  // The connection is gone, and the machine has been told.
  void Break() {
    machine_.OnBroken();
    Step();
    Closed();
  }
  void Closed() {
    machine_.OnClosed("gone", At());
    Step();
  }

  void Happen(gang::Fact fact) {
    machine_.OnFact(fact, At());
    Step();
  }
  void Report(uint32_t trial, int64_t step, const std::string& metric = "loss") {
    Happen({Attempt(trial), 0, gang::Report{.step = step, .metrics = {{metric, 0.5}}}});
  }
  void End(uint32_t trial) {
    Happen({Attempt(trial), 0, gang::Ended{gang::Outcome::kCancelled, {}}});
  }

  // Takes what was written since the last call, of one kind.
  std::vector<v1::FromExecutor> Written(v1::FromExecutor::MessageCase kind) {
    std::vector<v1::FromExecutor> found;
    std::erase_if(written_, [&](v1::FromExecutor& message) {
      if (message.message_case() != kind) return false;
      found.push_back(std::move(message));
      return true;
    });
    return found;
  }
  std::vector<uint64_t> SentSeqs() {
    std::vector<uint64_t> seqs;
    for (const auto& message : Written(v1::FromExecutor::kFacts)) {
      for (const v1::Fact& fact : message.facts().facts()) seqs.push_back(fact.seq());
    }
    return seqs;
  }

  void Connect() override { ++connects_; }
  void Write(v1::FromExecutor message) override { written_.push_back(std::move(message)); }
  void Close() override { ++closes_; }
  void Run(gang::GangSpec spec) override { started_.push_back(spec.attempt); }
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override {
    cancelled_.emplace_back(attempt, reason);
  }
  void Tell(const gang::AttemptId& attempt, const gang::Verdict& verdict) override {
    told_.emplace_back(attempt, verdict.step);
  }
  void Yield(const gang::AttemptId& attempt) override { yielded_.push_back(attempt); }
  void Remove(const Removals& removals) override { removals_ = removals; }
  v1::LogChunk ReadLog(const v1::LogRequest& request) override {
    v1::LogChunk chunk;
    chunk.set_data("rank " + std::to_string(request.rank()));
    return chunk;
  }

  BootClock::time_point now_{seconds(1000)};
  BootClock::time_point deadline_{};
  int steps_ = 0;
  int connects_ = 0;
  int closes_ = 0;
  uint64_t revision_ = 0;
  std::vector<v1::FromExecutor> written_;
  std::vector<gang::AttemptId> started_;
  std::vector<std::pair<gang::AttemptId, gang::CancelReason>> cancelled_;
  std::vector<std::pair<gang::AttemptId, int64_t>> told_;
  std::vector<gang::AttemptId> yielded_;
  Removals removals_;
  Machine machine_;
};

// ---- the connection

TEST_F(MachineTest, ConnectsAtOnceAndSaysWhoItIs) {
  EXPECT_EQ(connects_, 1);
  ASSERT_THAT(written_, SizeIs(1));
  EXPECT_EQ(written_[0].hello().name(), "host-a");
}

TEST_F(MachineTest, ConnectionWithoutAWelcomeIsGivenUp) {
  Written();
  Pass(kWelcomeTimeout - milliseconds(1));
  EXPECT_EQ(closes_, 0);
  Pass(milliseconds(1));
  EXPECT_EQ(closes_, 1);
  EXPECT_EQ(connects_, 1);  // not before the old one is gone
  Closed();
  Pass(Backoff::kFirst);
  EXPECT_EQ(connects_, 2);
}

TEST_F(MachineTest, PausesBetweenConnectionsGrowUntilOneIsOfUse) {
  const auto pause = [&] {
    Break();
    const auto begin = now_;
    while (connects_ == 0) Pass(milliseconds(1));
    connects_ = 0;
    return now_ - begin;
  };
  connects_ = 0;
  for (int i = 0; i < 12; ++i) {
    GetWelcomed();  // and no more than that: it might be refused each time
    pause();
  }
  EXPECT_GE(pause(), Backoff::kMax / 2);
  GetWelcomed();
  Acknowledge(0);
  EXPECT_LE(pause(), Backoff::kFirst);
}

TEST_F(MachineTest, OneMessageIsOnItsWayAtATimeAndFactsGatherForTheNext) {
  GetWelcomed();
  for (int step = 1; step <= 3; ++step) Report(0, step);
  EXPECT_THAT(SentSeqs(), ElementsAre(1));
  Written();
  EXPECT_THAT(SentSeqs(), ElementsAre(2, 3));
}

TEST_F(MachineTest, ReconnectSendsWhatIsNotAcknowledgedAndNothingElse) {
  GetWelcomed();
  for (int step = 1; step <= 3; ++step) {
    Report(0, step);
    Written();
  }
  Acknowledge(2);
  SentSeqs();
  Break();
  Pass(Backoff::kFirst);
  GetWelcomed();
  EXPECT_THAT(SentSeqs(), ElementsAre(3));
}

TEST_F(MachineTest, FactsThatStayUnacknowledgedAreSentAgainOnTheSameConnection) {
  GetWelcomed();
  Report(0, 1);
  Written();
  Report(0, 2);
  Written();
  SentSeqs();
  PassWriting(kResendAfter - milliseconds(1));
  EXPECT_THAT(SentSeqs(), IsEmpty());
  Acknowledge(1);  // it moves
  PassWriting(kResendAfter - milliseconds(1));
  EXPECT_THAT(SentSeqs(), IsEmpty());
  PassWriting(milliseconds(1));
  EXPECT_THAT(SentSeqs(), ElementsAre(2));
  Acknowledge(2);
  PassWriting(kResendAfter);
  EXPECT_THAT(SentSeqs(), IsEmpty());
  EXPECT_EQ(connects_, 1);
}

TEST_F(MachineTest, HeartbeatsDoNotQueueBehindFactsThatAreNotAcknowledged) {
  GetWelcomed();
  for (int step = 1; step <= 200; ++step) Report(0, step, std::string(64 << 10, 'm'));
  for (int i = 0; i < 400; ++i) Written();
  size_t bytes = 0;
  for (const auto& message : Written(v1::FromExecutor::kFacts)) bytes += message.ByteSizeLong();
  EXPECT_LE(bytes, kUnacknowledgedBytesMax + kFactBytesPerMessage + (1 << 10));
  Pass(kBeat);
  Written();
  EXPECT_THAT(Written(v1::FromExecutor::kHeartbeat), SizeIs(1));
}

TEST_F(MachineTest, FullOutboxSaysSoUntilFactsAreAcknowledged) {
  GetWelcomed();
  const int enough = 2 + static_cast<int>(kOutboxBytesMax / (1 << 20));
  for (int step = 1; step <= enough; ++step) Report(0, step, std::string(1 << 20, 'm'));
  EXPECT_TRUE(machine_.is_full());
  Acknowledge(static_cast<uint64_t>(enough));
  EXPECT_FALSE(machine_.is_full());
}

TEST_F(MachineTest, BusyServerIsTriedAgainAndGangsGoOn) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  Refuse(v1::Refusal::BUSY);
  Closed();
  Pass(Backoff::kFirst);
  EXPECT_EQ(connects_, 2);
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(MachineTest, OnlyTheNewestLogRequestsAreAnswered) {
  GetWelcomed();
  Report(0, 1);  // on its way, so that requests gather
  for (uint64_t i = 1; i <= kLogRequestsMax + 1; ++i) {
    v1::ToExecutor message;
    message.mutable_log_request()->set_request(i);
    Receive(std::move(message));
  }
  for (size_t i = 0; i <= kLogRequestsMax + 1; ++i) Written();
  const auto chunks = Written(v1::FromExecutor::kLogChunk);
  ASSERT_THAT(chunks, SizeIs(kLogRequestsMax));
  EXPECT_EQ(chunks[0].log_chunk().request(), 2u);
  EXPECT_EQ(chunks[0].log_chunk().data(), "rank 0");
}

// ---- the lease

TEST_F(MachineTest, LeaseHoldsForHoursInWhichHeartbeatsAreAnsweredAndFactsAreNot) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  Report(0, 1);
  Written();
  for (const BootClock::time_point end = now_ + std::chrono::hours(6); now_ < end;) {
    Pass(milliseconds(500));
    Written();
    for (const auto& beat : Written(v1::FromExecutor::kHeartbeat)) {
      Acknowledge(0, beat.heartbeat().time_us());
    }
  }
  EXPECT_THAT(cancelled_, IsEmpty());
  EXPECT_EQ(connects_, 1);
  EXPECT_EQ(closes_, 0);
}

TEST_F(MachineTest, SilenceLongerThanTheLeaseTearsGangsDown) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  Written();
  Pass(kLease - milliseconds(1));
  EXPECT_THAT(cancelled_, IsEmpty());
  Pass(milliseconds(1));
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, AnswerToAnOldHeartbeatDoesNotProlongTheLease) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  const int64_t first_us = At().wall_us;
  for (milliseconds at{0}; at < kLease; at += milliseconds(1000)) {
    Pass(milliseconds(1000));
    Acknowledge(0, first_us);
  }
  EXPECT_THAT(cancelled_, SizeIs(1));
}

TEST_F(MachineTest, MessageThatWaitedForASuspendedHostStartsNothing) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  StandStill(kLease);
  Receive(Wanting({Trial(0), Trial(1)}));  // it lay there when the host was continued
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kLeaseLost)));
}

TEST_F(MachineTest, EndOfAGangOnASuspendedHostStartsNoOther) {
  GetWelcomed();
  v1::Assignment first = Trial(0);
  v1::Assignment second = Trial(1);
  first.mutable_ranks(0)->add_gpus(0);
  second.mutable_ranks(0)->add_gpus(0);
  Receive(Wanting({first}));
  Receive(Wanting({second}));  // the GPU is still held
  StandStill(kLease);
  End(0);
  EXPECT_THAT(started_, ElementsAre(Attempt(0)));
}

TEST_F(MachineTest, WelcomeAfterALostLeaseStartsAnewOneLease) {
  GetWelcomed();
  StandStill(kLease);
  Step();
  Closed();
  Pass(Backoff::kFirst);
  GetWelcomed();
  Receive(Wanting({Trial(1)}));
  EXPECT_THAT(started_, ElementsAre(Attempt(1)));
  Pass(kLease - 2 * Backoff::kFirst);
  EXPECT_THAT(cancelled_, IsEmpty());
}

// ---- gangs

TEST_F(MachineTest, GangsOutliveAConnection) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  Break();
  Pass(Backoff::kFirst);
  GetWelcomed();
  revision_ = 0;  // numbered anew
  Receive(Wanting({Trial(0)}));
  EXPECT_THAT(started_, SizeIs(1));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(MachineTest, VerdictsAndYieldsArePassedOn) {
  GetWelcomed();
  v1::Assignment assignment = Trial(0);
  assignment.set_verdict_step(3);
  assignment.set_yield(true);
  Receive(Wanting({assignment}));
  EXPECT_THAT(told_, ElementsAre(std::pair(Attempt(0), 3)));
  EXPECT_THAT(yielded_, ElementsAre(Attempt(0)));
}

TEST_F(MachineTest, AssignmentThatIsNotUnderstoodFailsAndTheNextStarts) {
  GetWelcomed();
  v1::Assignment odd = Trial(0);
  odd.add_config()->set_name("lr");
  Receive(Wanting({odd, Trial(1)}));
  EXPECT_THAT(started_, ElementsAre(Attempt(1)));
  const auto messages = Written(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(messages[0].facts().facts(0).ended().failure().message(), HasSubstr("'lr'"));
}

TEST_F(MachineTest, UnwantedAttemptThatIsUnknownIsSaidToHaveEnded) {
  GetWelcomed();
  v1::ToExecutor message = Wanting({});
  *message.mutable_desired()->add_unwanted() = Trial(5).attempt();
  Receive(std::move(message));
  const auto messages = Written(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).attempt().trial(), 5u);
  EXPECT_EQ(messages[0].facts().facts(0).ended().outcome(), v1::Ended::CANCELLED);
}

TEST_F(MachineTest, RemovalsArePassedOnAndWhatIsGoneIsAFact) {
  GetWelcomed();
  v1::ToExecutor message = Wanting({});
  message.mutable_desired()->add_removals()->set_step(9);
  Receive(std::move(message));
  ASSERT_EQ(removals_.size(), 1);
  machine_.OnRemoved(removals_[0], At());
  Step();
  const auto messages = Written(v1::FromExecutor::kFacts);
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].facts().facts(0).removed().step(), 9);
}

// ---- the end

TEST_F(MachineTest, StopSaysGoodbyeFirstAndWaitsForTheLastAcknowledgement) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  machine_.Stop({});
  Step();
  EXPECT_THAT(Written(v1::FromExecutor::kGoodbye), SizeIs(1));
  Written();
  EXPECT_THAT(cancelled_, ElementsAre(std::pair(Attempt(0), gang::CancelReason::kUnwanted)));
  End(0);
  Written();
  EXPECT_EQ(closes_, 0);
  Acknowledge(1);
  EXPECT_EQ(closes_, 1);
  EXPECT_FALSE(machine_.done());
  Closed();
  EXPECT_TRUE(machine_.done());
  EXPECT_EQ(machine_.exit().reason, AgentExit::Reason::kStopped);
}

TEST_F(MachineTest, FarewellIsShortWhereNobodyAcknowledges) {
  GetWelcomed();
  Report(0, 1);
  Written();
  machine_.Stop({});
  Step();
  Written();
  Pass(kFarewellTimeout - milliseconds(1));
  EXPECT_EQ(closes_, 0);
  Pass(milliseconds(1));
  EXPECT_EQ(closes_, 1);
}

TEST_F(MachineTest, StopWithoutAServerEndsAtOnce) {
  machine_.Stop({});
  Step();
  Closed();
  EXPECT_TRUE(machine_.done());
}

TEST_F(MachineTest, NothingIsStartedOnceItIsToStop) {
  GetWelcomed();
  machine_.Stop({});
  Receive(Wanting({Trial(0)}));
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(MachineTest, SupersededTearsDownAndIsDoneWhenItsGangsAreGone) {
  GetWelcomed();
  Receive(Wanting({Trial(0)}));
  Refuse(v1::Refusal::SUPERSEDED);
  Closed();
  EXPECT_THAT(cancelled_, SizeIs(1));
  EXPECT_FALSE(machine_.done());
  End(0);
  ASSERT_TRUE(machine_.done());
  EXPECT_EQ(machine_.exit().reason, AgentExit::Reason::kSuperseded);
  EXPECT_EQ(machine_.exit().message, "no");
  EXPECT_EQ(connects_, 1);
}

TEST_F(MachineTest, RefusalForGoodEndsIt) {
  for (const v1::Refusal::Code code :
       {v1::Refusal::BAD_TOKEN, v1::Refusal::VERSION, v1::Refusal::BAD_HELLO}) {
    Machine machine(Hello(), gang::Folders("/data"), 1, *this, *this, *this);
    machine.Step(At());
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(code);
    machine.OnMessage(std::move(message), At());
    machine.OnClosed("", At());
    machine.Step(At());
    ASSERT_TRUE(machine.done());
    EXPECT_EQ(machine.exit().reason, AgentExit::Reason::kRefused);
  }
}

}  // namespace
}  // namespace attune::agent

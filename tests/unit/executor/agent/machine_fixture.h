#pragma once

#include "executor/agent/machine.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "executor/agent/messages.h"

namespace attune::agent {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

inline constexpr milliseconds kLease{120'000};
inline constexpr milliseconds kBeat{5'000};

// A machine with a fake link, fake gangs and fake files, which record all calls, and with a manual
// clock.
class MachineTest : public testing::Test, public ServerLink, public Gangs, public Files {
 protected:
  MachineTest() : machine_(Hello(), gang::Folders("/data"), 1, *this, *this, *this) { Step(); }

  static v1::Hello Hello() {
    v1::Hello hello;
    hello.set_name("host-a");
    return hello;
  }

  Now TimeNow() const { return {now_, microseconds(now_.time_since_epoch()).count()}; }
  void Step() { deadline_ = machine_.Step(TimeNow()); }

  // Lets time pass and calls Step() whenever the machine asks for it, like the agent's thread.
  void PassTime(milliseconds span) {
    const gang::BootClock::time_point end = now_ + span;
    while (deadline_ <= end) {
      now_ = std::max(now_, deadline_);
      Step();
      ASSERT_LT(++steps_, 1'000'000) << "the machine asks for Step() again and again";
    }
    now_ = end;
  }
  // Like PassTime(), with a network that accepts every message at once.
  void PassTimeWriting(milliseconds span) {
    for (const gang::BootClock::time_point end = now_ + span; now_ < end;) {
      PassTime(std::min(milliseconds(500), std::chrono::duration_cast<milliseconds>(end - now_)));
      FinishWrite();
    }
  }
  void Suspend(milliseconds span) { now_ += span; }  // without Step(), as on a suspended host

  void FinishWrite() {
    machine_.OnWritten();
    Step();
  }

  void Receive(v1::ToExecutor message) {
    machine_.OnMessage(std::move(message), TimeNow());
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
  void AskForLog(uint64_t request) {
    v1::ToExecutor message;
    message.mutable_log_request()->set_request(request);
    Receive(std::move(message));
  }
  void Refuse(v1::Refusal::Code code) {
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(code);
    message.mutable_refusal()->set_message("no");
    Receive(std::move(message));
  }
  void Release() {
    v1::ToExecutor message;
    message.mutable_released();
    Receive(std::move(message));
  }
  v1::ToExecutor MakeDesired(const std::vector<v1::Assignment>& assignments) {
    v1::ToExecutor message;
    message.mutable_desired()->set_revision(++revision_);
    for (const v1::Assignment& each : assignments) {
      *message.mutable_desired()->add_assignments() = each;
    }
    return message;
  }
  static v1::Assignment MakeAssignment(uint32_t trial) {
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
  static gang::AttemptId Attempt(uint32_t trial) {
    return FromProto(MakeAssignment(trial).attempt());
  }

  // Connects the machine and welcomes it; no message is being written afterwards.
  void GetWelcomed() {
    FinishWrite();
    Welcome();
  }
  // Closes the connection and tells the machine.
  void Break() {
    machine_.OnBroken();
    Step();
    Closed();
  }
  void Closed() {
    machine_.OnClosed("gone", TimeNow());
    Step();
  }

  void ReceiveFact(gang::Fact fact) {
    machine_.OnFact(fact, TimeNow());
    Step();
  }
  void Report(uint32_t trial, int64_t step, const std::string& metric = "loss") {
    ReceiveFact({Attempt(trial), 0, gang::Report{.step = step, .metrics = {{metric, 0.5}}}});
  }
  void ReportAndWait(uint32_t trial, int64_t step) {
    ReceiveFact(
        {Attempt(trial), 0, gang::Report{.step = step, .metrics = {{"loss", 0.5}}, .waits = true}});
  }
  void End(uint32_t trial) {
    ReceiveFact({Attempt(trial), 0, gang::Ended{gang::Outcome::kCancelled, {}}});
  }

  void Fail(uint32_t trial, int signal) {
    const gang::Failure failure{
        .kind = gang::FailureKind::kSignal, .rank = 0, .signal = signal, .message = "killed"};
    ReceiveFact({Attempt(trial), 0, gang::Ended{gang::Outcome::kFailed, failure}});
  }

  // Returns the messages of one kind that were written since the last call.
  std::vector<v1::FromExecutor> TakeWritten(v1::FromExecutor::MessageCase kind) {
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
    for (const auto& message : TakeWritten(v1::FromExecutor::kFacts)) {
      for (const v1::Fact& fact : message.facts().facts()) seqs.push_back(fact.seq());
    }
    return seqs;
  }

  // The kinds of the failures that were not sent to the server yet; connects the machine if
  // necessary.
  std::vector<v1::Failure::Kind> FailureKinds() {
    if (closes_ == 1 && connects_ == 1) {
      Closed();
      PassTime(Backoff::kFirst);
      GetWelcomed();
    }
    for (int i = 0; i < 4; ++i) FinishWrite();
    std::vector<v1::Failure::Kind> kinds;
    for (const auto& message : TakeWritten(v1::FromExecutor::kFacts)) {
      for (const v1::Fact& fact : message.facts().facts()) {
        if (fact.ended().has_failure()) kinds.push_back(fact.ended().failure().kind());
      }
    }
    return kinds;
  }

  void Connect() override { ++connects_; }
  void Write(v1::FromExecutor message) override { written_.push_back(std::move(message)); }
  void Close() override { ++closes_; }
  void Run(gang::GangSpec spec) override { started_.push_back(spec.attempt); }
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override {
    cancelled_.emplace_back(attempt, reason);
  }
  void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) override {
    verdicts_.emplace_back(attempt, verdict.step);
  }
  void Yield(const gang::AttemptId& attempt) override { yielded_.push_back(attempt); }
  void OnPeersFinished(const gang::AttemptId& attempt) override {
    peers_finished_.push_back(attempt);
  }
  void SetRendezvous(const gang::AttemptId&, const channel::Rendezvous& rank_zero) override {
    rendezvous_ports_.push_back(rank_zero.port);
  }
  void SetDeadline(gang::BootClock::time_point deadline) override {
    deadlines_.push_back(deadline);
  }
  void Remove(const Removals& removals) override { removals_ = removals; }
  void FindMissing(const v1::Inventory& inventory) override { inventories_.push_back(inventory); }
  void ReadLog(const v1::LogRequest& request) override {
    log_requests_.push_back(request.request());
  }
  void SendCheckpoint(const v1::CheckpointRequest& request) override {
    piece_requests_.push_back(request.request());
  }

  void Upload(const v1::Uploads& uploads) override { uploads_.push_back(uploads); }

  gang::BootClock::time_point now_{seconds(1000)};
  gang::BootClock::time_point deadline_{};
  int steps_ = 0;
  int connects_ = 0;
  int closes_ = 0;
  uint64_t revision_ = 0;
  std::vector<uint64_t> log_requests_;  // requests to read logs
  std::vector<v1::FromExecutor> written_;
  std::vector<gang::AttemptId> started_;
  std::vector<std::pair<gang::AttemptId, gang::CancelReason>> cancelled_;
  std::vector<gang::AttemptId> peers_finished_;
  std::vector<std::pair<gang::AttemptId, int64_t>> verdicts_;
  std::vector<int> rendezvous_ports_;  // ports of SetRendezvous() calls
  std::vector<gang::BootClock::time_point> deadlines_;
  std::vector<gang::AttemptId> yielded_;
  std::vector<uint64_t> piece_requests_;  // requests for pieces of checkpoints
  Removals removals_;
  std::vector<v1::Inventory> inventories_;
  std::vector<v1::Uploads> uploads_;
  Machine machine_;
};

}  // namespace attune::agent

#include "tests/sim/fake_executor.h"

#include <algorithm>
#include <utility>

namespace attune::sim {
namespace {

using simulate::kSecondUs;
using simulate::ToMicroseconds;

constexpr int64_t kPumpUs = 2'000;
constexpr int64_t kRetryUs = 4 * kSecondUs;     // at most, before the next connection
constexpr int64_t kStartUs = kSecondUs;         // at most, from the assignment to the first process
constexpr int64_t kTeardownUs = kSecondUs / 2;  // at most
constexpr int64_t kFarewellUs = 3 * kSecondUs;

}  // namespace

void FakeExecutor::After(int64_t us, simulate::Timeline::Action action) {
  around_.timeline.After(us, [this, process = process_, action = std::move(action)]() mutable {
    if (process != process_ || !up_) return;
    if (frozen_) {
      deferred_.push_back(std::move(action));
    } else {
      action();
    }
  });
}

void FakeExecutor::ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act) {
  After(us, [this, epoch = gang.assignment.epoch, phase = gang.phase, act = std::move(act)] {
    const auto found = gangs_.find(epoch);
    if (found != gangs_.end() && found->second.phase == phase) act(found->second);
  });
}

// ---- the process ----------------------------------------------------------------------------

void FakeExecutor::Start() {
  ++process_;
  up_ = true;
  leaving_ = has_lease_ = watching_lease_ = retrying_ = pumping_ = false;
  last_fact_ = sent_ = 0;
  outbox_.clear();
  wanted_.clear();
  ended_.clear();
  removed_.clear();
  Connect();
  Beat();
}

void FakeExecutor::Crash() {
  if (stream_) around_.network.Break(*stream_);
  if (stream_) around_.network.ForgetExecutor(*stream_);
  Exit();
}

void FakeExecutor::Exit() {
  up_ = frozen_ = false;
  ++process_;
  stream_.reset();
  welcomed_ = false;
  deferred_.clear();
  around_.reality.HostStandsStill(name_, false);
  for (const auto& [epoch, gang] : gangs_) around_.reality.GangGone(epoch);
  gangs_.clear();
}

void FakeExecutor::Leave() {
  leaving_ = true;
  if (welcomed_) around_.network.Send(*stream_, FromExecutor(Goodbye{}));
  wanted_.clear();
  CancelAll(FailureKind::kNone);
  After(kFarewellUs, [this] {
    if (stream_) around_.network.CloseByExecutor(*stream_);
    Exit();
  });
}

void FakeExecutor::Freeze() {
  frozen_ = true;
  around_.reality.HostStandsStill(name_, true);
}

void FakeExecutor::Thaw() {
  frozen_ = false;
  if (has_lease_ && around_.timeline.now() >= lease_until_) {
    for (auto& [epoch, gang] : gangs_) {
      around_.reality.GangDoomed(epoch);
      // Its processes move again before they are killed.
      if (gang.phase == Phase::kRunning && !gang.worker.waits() && Happens(0.5)) Say(gang);
    }
    LoseLease();
  }
  around_.reality.HostStandsStill(name_, false);
  for (auto& action : std::exchange(deferred_, {})) action();
}

// ---- the connection -------------------------------------------------------------------------

void FakeExecutor::Connect() {
  retrying_ = false;
  welcomed_ = false;
  stream_ = around_.network.Connect(*this);
  hello_sent_ = around_.timeline.now();
  around_.network.Send(*stream_,
                       FromExecutor(Hello{.name = name_,
                                          .instance = name_ + "#" + std::to_string(process_),
                                          .resources = resources_}));
  // A welcome that does not come: the connection is given up.
  After(kLeaseUs, [this, stream = stream_] {
    if (stream_ == stream && !welcomed_) Reconnect();
  });
}

void FakeExecutor::Reconnect() {
  if (stream_) around_.network.CloseByExecutor(*stream_);
  stream_.reset();
  welcomed_ = false;
  if (retrying_ || leaving_) return;
  retrying_ = true;
  After(around_.random.Integer(0, kRetryUs), [this] { Connect(); });
}

void FakeExecutor::OnClosed(StreamId stream) {
  if (stream_ != stream) return;
  After(0, [this, stream] {
    if (stream_ == stream) Reconnect();
  });
}

void FakeExecutor::OnMessage(StreamId stream, ToExecutor message) {
  After(0, [this, stream, message = std::move(message)]() mutable {
    if (stream_ != stream) return;
    if (std::holds_alternative<Welcome>(message)) welcomed_ = true;
    if (std::holds_alternative<Refusal>(message)) return On(std::get<Refusal>(message));
    if (!welcomed_) return;
    std::visit([this](auto& each) { On(each); }, message);
  });
}

void FakeExecutor::On(const Welcome&) {
  RenewLease(hello_sent_);
  revision_ = 0;
  if (around_.variant != Variant::kNeverResends) sent_ = 0;
  Pump();
}

void FakeExecutor::On(const Refusal& refusal) {
  if (!refusal.superseded) return Reconnect();
  Exit();
}

void FakeExecutor::On(const Ack& ack) {
  if (ack.heartbeat) RenewLease(*ack.heartbeat);
  while (!outbox_.empty() && outbox_.front().seq <= ack.seq) {
    around_.witness.OnAcknowledged(outbox_.front().command);
    outbox_.pop_front();
    if (sent_ > 0) --sent_;
  }
}

void FakeExecutor::On(Desired& desired) {
  if (leaving_ || desired.revision <= revision_) return;
  revision_ = desired.revision;
  wanted_.clear();
  for (Assignment& assignment : desired.assignments) {
    around_.witness.OnAssigned(assignment);
    wanted_.emplace(assignment.epoch, std::move(assignment));
  }
  std::erase_if(removed_, [&](const CheckpointId& id) {
    return std::ranges::find(desired.removals, id, &Removal::checkpoint) == desired.removals.end();
  });
  for (const Removal& removal : desired.removals) Delete(removal);
  for (const AttemptRef& gone : desired.unwanted) {
    if (!gangs_.contains(gone.epoch) && ended_.emplace(gone.epoch, gone.attempt.trial).second)
      Add(RecordFact{gone.epoch, AttemptEnded{gone.attempt, Outcome::kKilled, {}}});
  }
  Reconcile();
}

void FakeExecutor::Beat() {
  if (welcomed_) around_.network.Send(*stream_, FromExecutor(Heartbeat{around_.timeline.now()}));
  After(kHeartbeatUs, [this] { Beat(); });
}

void FakeExecutor::RenewLease(Time sent) {
  has_lease_ = true;
  lease_until_ = Time{sent.us + kLeaseUs};
  if (!watching_lease_) CheckLease();
}

void FakeExecutor::CheckLease() {
  watching_lease_ = has_lease_;
  if (!has_lease_) return;
  if (around_.timeline.now() >= lease_until_) return LoseLease();
  After(lease_until_.us - around_.timeline.now().us, [this] { CheckLease(); });
}

void FakeExecutor::LoseLease() {
  has_lease_ = watching_lease_ = false;
  wanted_.clear();
  CancelAll(FailureKind::kLease);
  Reconnect();
}

void FakeExecutor::Add(Command fact) {
  outbox_.push_back({++last_fact_, std::move(fact)});
  if (pumping_) return;
  pumping_ = true;
  After(kPumpUs, [this] {
    pumping_ = false;
    Pump();
  });
}

void FakeExecutor::Pump() {
  if (!welcomed_ || sent_ == outbox_.size()) return;
  Facts facts;
  facts.facts.assign(outbox_.begin() + static_cast<ptrdiff_t>(sent_), outbox_.end());
  sent_ = outbox_.size();
  around_.network.Send(*stream_, FromExecutor(std::move(facts)));
}

// ---- gangs ----------------------------------------------------------------------------------

void FakeExecutor::Reconcile() {
  for (auto& [epoch, gang] : gangs_) {
    const auto wish = wanted_.find(epoch);
    if (wish == wanted_.end()) {
      End(gang, Outcome::kKilled, {});
    } else {
      gang.assignment.orders = wish->second.orders;
      if (gang.phase == Phase::kRunning && gang.worker.waits()) Obey(gang);
    }
  }
  for (const auto& [epoch, assignment] : wanted_) {
    if (MayStart(assignment)) StartGang(assignment);
  }
}

bool FakeExecutor::MayStart(const Assignment& assignment) const {
  const Epoch epoch = assignment.epoch;
  const TrialId trial = assignment.attempt.trial;
  if (gangs_.contains(epoch) || ended_.contains(epoch)) return false;
  const auto newer = [&](const auto& entry) { return entry.first > epoch; };
  if (std::ranges::any_of(wanted_, [&](const auto& other) {
        return newer(other) && other.second.attempt.trial == trial;
      }))
    return false;
  if (std::ranges::any_of(ended_,
                          [&](const auto& other) { return newer(other) && other.second == trial; }))
    return false;
  return std::ranges::none_of(gangs_, [&](const auto& other) {
    const Assignment& held = other.second.assignment;
    if (held.attempt.trial == trial) return true;
    return std::ranges::any_of(assignment.ranks, [&](const RankSlot& slot) {
      return std::ranges::any_of(held.ranks, [&](const RankSlot& theirs) {
        return std::ranges::find_first_of(slot.gpus, theirs.gpus) != slot.gpus.end();
      });
    });
  });
}

void FakeExecutor::StartGang(const Assignment& assignment) {
  around_.reality.GangStarts(name_, assignment);
  Gang& gang = gangs_[assignment.epoch];
  gang.assignment = assignment;
  if (assignment.resume) gang.worker = simulate::Worker(assignment.resume->step);
  if (Happens(around_.faults.cannot_start)) {
    End(gang, Outcome::kFailed, {.kind = FailureKind::kStart, .message = "there is no program"});
  } else if (Happens(around_.faults.never_starts)) {
    ForGang(gang, ToMicroseconds(assignment.stall_timeout), [this](Gang& silent) {
      End(silent, Outcome::kFailed,
          {.kind = FailureKind::kStall, .rank = 0, .message = "rank 0 has never said a word"});
    });
  } else {
    ForGang(gang, around_.random.Integer(1, kStartUs), [this](Gang& ready) { Launched(ready); });
  }
}

void FakeExecutor::Launched(Gang& gang) {
  gang.phase = Phase::kRunning;
  const Assignment& assignment = gang.assignment;
  AttemptStarted started{assignment.attempt, {}};
  for (size_t rank = 0; rank < assignment.ranks.size(); ++rank)
    started.pids.push_back(1000 + static_cast<int64_t>(rank));
  Add(RecordFact{assignment.epoch, std::move(started)});
  Train(gang);
}

// The next step, when it is done; or why it never will be.
void FakeExecutor::Train(Gang& gang) {
  const auto rank =
      static_cast<int>(around_.random.Integer(0, std::ssize(gang.assignment.ranks) - 1));
  if (Happens(around_.faults.rank_hangs)) {
    return ForGang(gang, ToMicroseconds(gang.assignment.stall_timeout), [this, rank](Gang& silent) {
      End(silent, Outcome::kFailed,
          {.kind = FailureKind::kStall, .rank = rank, .message = "a rank makes no progress"});
    });
  }
  const int64_t us = around_.random.Integer(around_.step_us / 2, around_.step_us * 3 / 2);
  const bool fails = Happens(around_.faults.rank_fails);
  ForGang(gang, us, [this, us, rank, fails](Gang& trained) {
    if (fails) {
      return End(
          trained, Outcome::kFailed,
          {.kind = FailureKind::kExit, .rank = rank, .exit_code = 1, .message = "a rank fails"});
    }
    trained.seconds += static_cast<double>(us) / kSecondUs;
    Say(trained);
    if (trained.worker.waits()) {
      Obey(trained);
    } else {
      Train(trained);
    }
  });
}

// What rank 0 has to say after one more step.
void FakeExecutor::Say(Gang& gang) {
  const Assignment& assignment = gang.assignment;
  const AttemptId& attempt = assignment.attempt;
  const auto said = gang.worker.Train(assignment.orders);
  if (said.checkpoint) {
    const std::string path = "/checkpoints/" + ToString(attempt.trial) + "/step-" +
                             std::to_string(said.step.value) + "-attempt-" +
                             std::to_string(attempt.number);
    around_.reality.FileSaved(path);
    Add(RecordFact{assignment.epoch, CheckpointSaved{attempt, {said.step, path, "sha256:0"}, 1}});
  }
  if (!gang.stepped) {
    gang.stepped = true;
    Add(RecordFact{assignment.epoch, AttemptFirstStep{attempt, around_.timeline.now()}});
  }
  attune::Report report{.step = said.step, .seconds = Seconds(gang.seconds), .waits = said.waits};
  report.metrics.emplace("loss", around_.value(attempt.trial, assignment.config, said.step));
  around_.reality.Reported(assignment.epoch, said.step);
  Add(RecordFact{assignment.epoch, TrialReported{attempt, std::move(report)}});
}

// It waits for a verdict; it may be there.
void FakeExecutor::Obey(Gang& gang) {
  if (gang.worker.Obey(gang.assignment.orders)) return Train(gang);
  if (gang.worker.left()) End(gang, Outcome::kFinished, {});
}

void FakeExecutor::CancelAll(FailureKind why) {
  for (auto& [epoch, gang] : gangs_) {
    if (why == FailureKind::kNone) {
      End(gang, Outcome::kKilled, {});
    } else {
      End(gang, Outcome::kFailed,
          {.kind = why, .rank = -1, .message = "torn down, for the lease was over"});
    }
  }
}

// The gang is torn down, or has left by itself; its end is told when nothing of it is left.
void FakeExecutor::End(Gang& gang, Outcome outcome, Failure failure) {
  if (gang.phase == Phase::kEnding) return;
  gang.phase = Phase::kEnding;
  ForGang(gang, around_.random.Integer(1, kTeardownUs),
          [this, outcome, failure = std::move(failure)](Gang& gone) {
            const Epoch epoch = gone.assignment.epoch;
            const AttemptId attempt = gone.assignment.attempt;
            gangs_.erase(epoch);
            around_.reality.GangGone(epoch);
            ended_.emplace(epoch, attempt.trial);
            Add(RecordFact{epoch, AttemptEnded{attempt, outcome, failure}});
            if (!leaving_) Reconcile();
          });
}

void FakeExecutor::Delete(const Removal& removal) {
  if (!removed_.insert(removal.checkpoint).second) return;
  around_.reality.FileDeleted(removal.path);
  Add(RecordRemoval{removal.checkpoint});
}

}  // namespace attune::sim

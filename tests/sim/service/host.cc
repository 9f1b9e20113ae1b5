#include "tests/sim/service/host.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "executor/agent/host_lock.h"

namespace attune::sim {
namespace {

constexpr int64_t kStepUs = 2'000;   // at most, until facts are handed to the machine
constexpr int64_t kWriteUs = 2'000;  // at most
constexpr int64_t kDeleteUs = 100'000;
constexpr int64_t kDiskShortUs = 60'000'000;  // at most, until somebody has made room
constexpr int64_t kBootUs = 1'000'000;        // boot time at the beginning of the world
// One folder that all hosts share.
constexpr char kDataDir[] = "/data";

}  // namespace

agent::Now Host::Now() const {
  const int64_t now_us = around_.timeline.now().us - slept_us_;
  return {.boot = gang::BootClock::time_point(gang::BootClock::duration(kBootUs + now_us)),
          .wall_us = now_us};
}

void Host::After(int64_t us, simulate::Timeline::Action action) {
  around_.timeline.After(us, [this, process = process_, action = std::move(action)]() mutable {
    if (process != process_) return;
    if (frozen_) {
      deferred_.push_back(std::move(action));
    } else {
      action();
    }
  });
}

// ---- the process ----------------------------------------------------------------------------

void Host::Start(int64_t lives_us) {
  ++process_;
  const int64_t clock_us =
      around_.random.Integer(-around_.faults.clock_jump_us, around_.faults.clock_jump_us);
  started_us_ = agent::StartAfter(started_us_, Now().wall_us + clock_us);
  around_.reality.Disturbed(name_, around_.timeline.now());
  around_.reality.HostStarts(name_, planned_.folder);
  gangs_ = std::make_unique<TrainingGangs>(
      around_, name_,
      [this](int64_t us, simulate::Timeline::Action action) { After(us, std::move(action)); },
      [this](gang::Fact fact) {
        facts_.push_back(std::move(fact));
        StepSoon();
      });
  agent::ServerLink& link = *this;
  agent::Files& files = *this;
  machine_ = std::make_unique<agent::Machine>(
      Hello(), gang::Folders(kDataDir), around_.random.Bits(), link, *gangs_, files,
      std::chrono::milliseconds(0),
      lives_us > 0 ? Now().boot + std::chrono::microseconds(lives_us) : agent::Machine::kNever);
  Step();
}

v1::Hello Host::Hello() const {
  v1::Hello hello;
  hello.set_format(kFormat);
  hello.set_name(name_);
  hello.set_instance(name_ + "#" + std::to_string(process_));
  hello.set_started_us(started_us_);
  hello.mutable_resources()->set_cpus(static_cast<uint32_t>(planned_.resources.cpus));
  hello.mutable_resources()->set_gpus(static_cast<uint32_t>(planned_.resources.gpus));
  hello.mutable_resources()->set_memory_bytes(
      static_cast<uint64_t>(planned_.resources.memory_bytes));
  hello.set_spans(planned_.spans);
  hello.set_folder(planned_.folder);
  hello.mutable_labels()->insert(planned_.labels.begin(), planned_.labels.end());
  return hello;
}

void Host::Crash() {
  if (stream_) around_.network.Break(*stream_);
  if (stream_) around_.network.ForgetExecutor(*stream_);
  Exit();
}

void Host::Exit() {
  ++process_;
  machine_.reset();
  gangs_.reset();
  facts_.clear();
  step_soon_ = frozen_ = leaving_ = unhealthy_ = false;
  disk_shortages_ = 0;
  step_at_ = agent::Machine::kNever;
  removals_.clear();
  sweep_removals_.clear();
  said_.clear();
  said_seq_ = 0;
  deferred_.clear();
  stream_.reset();
  around_.reality.Disconnects(name_);
  around_.reality.HostStandsStill(name_, false);
}

void Host::Leave(std::chrono::milliseconds grace) {
  leaving_ = true;
  machine_->Leave(grace, Now());
  Step();
}

void Host::Freeze() {
  frozen_ = true;
  frozen_at_ = around_.timeline.now();
  around_.reality.HostStandsStill(name_, true);
}

// Processes move again before the executor's does, or after it.
void Host::Thaw() {
  frozen_ = false;
  if (around_.variant == Variant::kSleepsThroughLease)
    slept_us_ += around_.timeline.now().us - frozen_at_.us;
  if (Now().boot >= machine_->lease_until()) gangs_->MoveOnceMore();
  around_.reality.HostStandsStill(name_, false);
  around_.reality.Disturbed(name_, around_.timeline.now());
  const uint64_t process = process_;
  for (auto& action : std::exchange(deferred_, {})) {
    if (process == process_) action();
  }
  if (process == process_) Step();
}

void Host::SetUnhealthy(bool unhealthy) {
  unhealthy_ = unhealthy;
  TellHealth();
  Step();
}

void Host::TellHealth() {
  const std::string disk = disk_shortages_ > 0 ? "its disk is full" : "";
  machine_->OnHealth({.problem = unhealthy_ ? "a GPU is lost" : disk});
}

// As agent::Agent: the server hears of the disk before it hears of the gang.
void Host::NoteDisk(const gang::Fact& fact) {
  const auto* ended = std::get_if<gang::Ended>(&fact.what);
  if (ended == nullptr || !ended->failure) return;
  if (!ended->failure->disk_full && ended->failure->kind != gang::FailureKind::kDisk) return;
  ++disk_shortages_;
  TellHealth();
  After(around_.random.Integer(0, kDiskShortUs), [this] {
    --disk_shortages_;
    TellHealth();
    StepSoon();
  });
}

// ---- the machine ----------------------------------------------------------------------------

void Host::StepSoon() {
  if (std::exchange(step_soon_, true)) return;
  After(around_.random.Integer(0, kStepUs), [this] {
    step_soon_ = false;
    Step();
  });
}

void Host::HandInFacts() {
  for (gang::Fact& fact : std::exchange(facts_, {})) {
    NoteDisk(fact);
    machine_->OnFact(fact, Now());
  }
}

void Host::Step() {
  HandInFacts();
  const auto next = machine_->Step(Now());
  if (machine_->done()) return Exit();
  if (next >= step_at_) return;
  step_at_ = next;
  After((next - Now().boot).count(), [this, next] {
    if (step_at_ != next) return;
    step_at_ = agent::Machine::kNever;
    Step();
  });
}

void Host::OnMessage(StreamId stream, v1::ToExecutor message) {
  After(0, [this, stream, message = std::move(message)]() mutable {
    if (stream_ != stream) return;
    if (message.has_ack()) Acknowledged(message.ack().seq());
    if (message.refusal().code() == v1::Refusal::SUPERSEDED) around_.reality.IsSuperseded(name_);
    for (const v1::Assignment& assignment : message.desired().assignments())
      around_.witness.OnAssigned(assignment);
    HandInFacts();
    machine_->OnMessage(std::move(message), Now());
    Step();
  });
}

void Host::OnClosed(StreamId stream) {
  if (stream_ != stream) return;
  After(0, [this, stream] {
    if (stream_ != stream) return;
    machine_->OnBroken();
    Step();
  });
}

void Host::Connect() {
  stream_ = around_.network.Connect(*this);
  around_.reality.Connects(name_, around_.timeline.now());
}

void Host::Write(v1::FromExecutor message) {
  if (message.has_facts()) KeepFacts(*message.mutable_facts());
  around_.network.Send(*stream_, std::move(message));
  After(around_.random.Integer(0, kWriteUs), [this, stream = stream_] {
    if (stream_ != stream) return;
    machine_->OnWritten();
    Step();
  });
}

void Host::Close() {
  const StreamId stream = *stream_;
  stream_.reset();
  around_.reality.Disconnects(name_);
  around_.network.CloseByExecutor(stream);
  After(0, [this] {
    machine_->OnClosed("", Now());
    Step();
  });
}

// What was said stays here until it is acknowledged, to be held against the log then.
void Host::KeepFacts(v1::Facts& facts) {
  if (around_.variant == Variant::kNeverResends) {
    const auto again = std::ranges::find_if(
        facts.facts(), [this](const v1::Fact& fact) { return fact.seq() > said_seq_; });
    const auto count = static_cast<int>(again - facts.facts().begin());
    facts.mutable_facts()->DeleteSubrange(0, count);
  }
  for (const v1::Fact& fact : facts.facts()) {
    if (fact.seq() <= said_seq_) continue;
    said_seq_ = fact.seq();
    said_.push_back(fact);
  }
}

void Host::Acknowledged(uint64_t seq) {
  while (!said_.empty() && said_.front().seq() <= seq) {
    around_.witness.OnAcknowledged(name_, said_.front());
    said_.pop_front();
  }
}

// ---- files ----------------------------------------------------------------------------------

void Host::Remove(const agent::Removals& removals) {
  std::erase_if(removals_, [&](const std::string& path) {
    return std::ranges::find(removals.checkpoints, path, &v1::CheckpointRemoval::path) ==
           removals.checkpoints.end();
  });
  for (const v1::CheckpointRemoval& removal : removals.checkpoints) {
    if (!removals_.insert(removal.path()).second) continue;
    After(around_.random.Integer(0, kDeleteUs), [this, removal, wanted = removals_wanted_] {
      if (wanted != removals_wanted_) return;
      around_.reality.FileDeleted(removal.path());
      machine_->OnRemoved(removal, Now());
      StepSoon();
    });
  }
  std::erase_if(sweep_removals_, [&](uint64_t sweep) {
    return std::ranges::find(removals.sweeps, sweep, &agent::SweepFiles::sweep) ==
           removals.sweeps.end();
  });
  for (const auto& [sweep, identity] : removals.sweeps) {
    if (!sweep_removals_.insert(sweep).second) continue;
    After(around_.random.Integer(0, kDeleteUs), [this, sweep = sweep, wanted = removals_wanted_] {
      if (wanted != removals_wanted_) return;
      around_.reality.SweepDeleted(gang::Folders(kDataDir).Sweep(sweep), name_);
      machine_->OnSweepRemoved(sweep, Now());
      StepSoon();
    });
  }
}

void Host::LookFor(const v1::Inventory& inventory) {
  ++removals_wanted_;
  removals_.clear();
  sweep_removals_.clear();
  if (around_.variant == Variant::kForgetsInventory) return;
  After(around_.random.Integer(0, kDeleteUs), [this, inventory] {
    for (const v1::CheckpointName& checkpoint : inventory.checkpoints()) {
      const std::string path = gang::Folders(kDataDir).Checkpoints(
                                   {.sweep = checkpoint.sweep(), .trial = checkpoint.trial()}) /
                               gang::CheckpointFolder(checkpoint.step(), checkpoint.attempt());
      if (!around_.reality.Reads(name_, path)) machine_->OnGone(checkpoint, Now());
    }
    StepSoon();
  });
}

void Host::ReadLog(const v1::LogRequest&) { machine_->OnLog({}); }

}  // namespace attune::sim

#include "tests/sim/service/host.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "executor/agent/name_lock.h"

namespace attune::sim {
namespace {

constexpr int64_t kMaxStepUs = 2'000;  // until the machine gets new facts
constexpr int64_t kMaxWriteUs = 2'000;
constexpr int64_t kMaxDeleteUs = 100'000;
constexpr int64_t kMaxDiskFullUs = 60'000'000;  // until the disk has space again
constexpr int64_t kMaxStoreUs = 20'000'000;     // until a checkpoint is copied to an object store
constexpr double kDeletesCopy = 0.3;            // probability that a copy is deleted later
constexpr int64_t kBootUs = 1'000'000;          // boot clock at the start of the world
// The data folder; all hosts use the same path.
constexpr char kDataDir[] = "/data";

}  // namespace

agent::Now Host::Now() const {
  const int64_t now_us = environment_.timeline.now().us - slept_us_;
  return {.boot = gang::BootClock::time_point(gang::BootClock::duration(kBootUs + now_us)),
          .wall_us = now_us};
}

void Host::ScheduleAfter(int64_t us, simulate::Timeline::Action action) {
  environment_.timeline.ScheduleAfter(
      us, [this, process = process_, action = std::move(action)]() mutable {
        if (process != process_) return;
        if (frozen_) {
          deferred_.push_back(std::move(action));
        } else {
          action();
        }
      });
}

// ---- the process ----------------------------------------------------------------------------

void Host::Start(int64_t lifetime_us) {
  ++process_;
  const int64_t clock_us = environment_.random.Integer(-environment_.faults.clock_jump_us,
                                                       environment_.faults.clock_jump_us);
  started_us_ = agent::NextStartTime(started_us_, Now().wall_us + clock_us);
  environment_.reality.OnDisturbance(name_, environment_.timeline.now());
  environment_.reality.OnHostStarted(name_, planned_.folder);
  MakeGangs();
  agent::ServerLink& link = *this;
  agent::Files& files = *this;
  machine_ = std::make_unique<agent::Machine>(
      Hello(), gang::Folders(kDataDir), environment_.random.Bits(), link, *fetching_gangs_, files,
      std::chrono::milliseconds(0),
      lifetime_us > 0 ? Now().boot + std::chrono::microseconds(lifetime_us)
                      : agent::Machine::kNever);
  Step();
}

void Host::MakeGangs() {
  const auto record = [this](gang::Fact fact) {
    facts_.push_back(std::move(fact));
    StepSoon();
  };
  gangs_ = std::make_unique<TrainingGangs>(
      environment_, name_,
      [this](int64_t us, simulate::Timeline::Action action) {
        ScheduleAfter(us, std::move(action));
      },
      record);
  fetching_gangs_ = std::make_unique<agent::FetchingGangs>(
      *gangs_,
      agent::FetchingGangs::Fetches{
          // The gangs themselves simulate the transfer of checkpoints.
          .checkpoint =
              [this](const gang::AttemptId& attempt, const gang::RemoteFiles& files,
                     const std::string&) {
                const gang::AttemptId saver{.sweep = files.name.sweep, .trial = files.name.trial};
                const std::filesystem::path path =
                    gang::Folders(kDataDir).Checkpoints(saver) / files.folder;
                AfterFetch(1, [this, attempt, path] {
                  fetching_gangs_->OnCheckpoint(attempt, {.folder = path});
                });
              },
          .code =
              [this](const gang::GangSpec& spec) {
                FetchLater("code", [this, attempt = spec.attempt](const agent::Fetched& fetched) {
                  fetching_gangs_->OnCode(attempt, fetched);
                });
              },
          .data =
              [this](const gang::GangSpec& spec) {
                for (const gang::DataFile& file : spec.data)
                  FetchLater(gang::ToString(file),
                             [this, attempt = spec.attempt](const agent::Fetched& fetched) {
                               fetching_gangs_->OnData(attempt, fetched);
                             });
              },
          .environment = [this](const gang::GangSpec& spec) { BuildLater(spec.attempt); },
          .release = [](const gang::AttemptId&) {}},
      [this, record](const gang::AttemptId& attempt, gang::Ended ended) {
        record({attempt, environment_.timeline.now().us, std::move(ended)});
      });
}

void Host::FetchLater(const std::string& name,
                      const std::function<void(const agent::Fetched&)>& deliver) {
  AfterFetch(environment_.random.Integer(1, kMaxFetchUs), [this, name, deliver] {
    agent::Fetched fetched{.name = name, .folder = "/copies"};
    if (environment_.Happens(environment_.faults.cannot_fetch))
      fetched.error = name + " could not be fetched";
    deliver(fetched);
  });
}

void Host::BuildLater(const gang::AttemptId& attempt) {
  AfterFetch(environment_.random.Integer(1, kMaxFetchUs), [this, attempt] {
    agent::BuiltEnvironment built{.folder = "/environment"};
    if (environment_.Happens(environment_.faults.cannot_build)) {
      built.error = "the packages could not be installed";
      built.is_host_fault = environment_.random.Integer(0, 1) == 0;
    }
    fetching_gangs_->OnEnvironment(attempt, built);
  });
}

// As in the agent, the machine checks its lease before a fetched gang starts.
void Host::AfterFetch(int64_t us, std::function<void()> deliver) {
  ScheduleAfter(us, [this, deliver = std::move(deliver)] {
    Step();
    if (fetching_gangs_ == nullptr) return;  // the process has ended
    deliver();
    StepSoon();
  });
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
  if (stream_) environment_.network.Break(*stream_);
  if (stream_) environment_.network.ForgetExecutor(*stream_);
  Exit();
}

void Host::Exit() {
  ++process_;
  machine_.reset();
  fetching_gangs_.reset();
  gangs_.reset();
  facts_.clear();
  step_soon_ = frozen_ = leaving_ = unhealthy_ = false;
  disk_shortages_ = 0;
  step_at_ = agent::Machine::kNever;
  removals_.clear();
  sweep_removals_.clear();
  unacknowledged_.clear();
  last_sent_seq_ = 0;
  deferred_.clear();
  stream_.reset();
  environment_.reality.OnDisconnected(name_);
  environment_.reality.SetFrozen(name_, false);
}

void Host::Leave(std::chrono::milliseconds grace) {
  leaving_ = true;
  machine_->Leave(grace, Now());
  Step();
}

void Host::Freeze() {
  frozen_ = true;
  frozen_at_ = environment_.timeline.now();
  environment_.reality.SetFrozen(name_, true);
}

// Some gangs move again before the executor's process, others after it.
void Host::Thaw() {
  frozen_ = false;
  if (environment_.variant == Variant::kSleepsThroughLease)
    slept_us_ += environment_.timeline.now().us - frozen_at_.us;
  if (Now().boot >= machine_->lease_until()) gangs_->TrainOneMoreStep();
  environment_.reality.SetFrozen(name_, false);
  environment_.reality.OnDisturbance(name_, environment_.timeline.now());
  const uint64_t process = process_;
  for (auto& action : std::exchange(deferred_, {})) {
    if (process == process_) action();
  }
  if (process == process_) Step();
}

void Host::SetUnhealthy(bool unhealthy) {
  unhealthy_ = unhealthy;
  SendHealth();
  Step();
}

void Host::SendHealth() {
  const std::string disk_problem = disk_shortages_ > 0 ? "its disk is full" : "";
  machine_->OnHealth({.problem = unhealthy_ ? "a GPU is lost" : disk_problem});
}

// Reports the full disk before the end of the gang, like agent::Agent.
void Host::ReportFullDisk(const gang::Fact& fact) {
  const auto* ended = std::get_if<gang::Ended>(&fact.what);
  if (ended == nullptr || !ended->failure) return;
  if (!ended->failure->disk_full && ended->failure->kind != gang::FailureKind::kDisk) return;
  ++disk_shortages_;
  SendHealth();
  ScheduleAfter(environment_.random.Integer(0, kMaxDiskFullUs), [this] {
    --disk_shortages_;
    SendHealth();
    StepSoon();
  });
}

// ---- the machine ----------------------------------------------------------------------------

void Host::StepSoon() {
  if (std::exchange(step_soon_, true)) return;
  ScheduleAfter(environment_.random.Integer(0, kMaxStepUs), [this] {
    step_soon_ = false;
    Step();
  });
}

void Host::PassFacts() {
  for (gang::Fact& fact : std::exchange(facts_, {})) {
    ReportFullDisk(fact);
    if (const auto* saved = std::get_if<gang::CheckpointSaved>(&fact.what))
      StoreLater(fact.attempt, *saved);
    machine_->OnFact(fact, Now());
  }
}

// The server may order that a checkpoint is copied to an object store. Later it may delete the
// copy.
void Host::StoreLater(const gang::AttemptId& attempt, const gang::CheckpointSaved& saved) {
  if (!environment_.Happens(environment_.faults.stored)) return;
  v1::CheckpointName name;
  name.set_sweep(attempt.sweep);
  name.set_trial(attempt.trial);
  name.set_attempt(attempt.attempt);
  name.set_step(saved.step);
  const auto report = [this, name, digest = saved.digest](const std::string& address) {
    machine_->OnStored(name, digest, address, Now());
    StepSoon();
  };
  const int64_t stored_us = environment_.random.Integer(1, kMaxStoreUs);
  ScheduleAfter(stored_us, [this, report, path = saved.path, digest = saved.digest] {
    if (!environment_.reality.CanRead(name_, path)) return;
    environment_.reality.OnStored(digest);
    report("s3://bucket");
  });
  if (!environment_.Happens(kDeletesCopy)) return;
  ScheduleAfter(stored_us + environment_.random.Integer(1, kMaxStoreUs), [report] { report(""); });
}

void Host::Step() {
  PassFacts();
  const auto next = machine_->Step(Now());
  if (machine_->done()) return Exit();
  if (next >= step_at_) return;
  step_at_ = next;
  ScheduleAfter((next - Now().boot).count(), [this, next] {
    if (step_at_ != next) return;
    step_at_ = agent::Machine::kNever;
    Step();
  });
}

void Host::OnMessage(StreamId stream, v1::ToExecutor message) {
  ScheduleAfter(0, [this, stream, message = std::move(message)]() mutable {
    if (stream_ != stream) return;
    if (message.has_ack()) HandleAck(message.ack().seq());
    if (message.refusal().code() == v1::Refusal::SUPERSEDED)
      environment_.reality.OnSuperseded(name_);
    for (const v1::Assignment& assignment : message.desired().assignments())
      environment_.witness.OnAssigned(assignment);
    PassFacts();
    machine_->OnMessage(std::move(message), Now());
    Step();
  });
}

void Host::OnClosed(StreamId stream) {
  if (stream_ != stream) return;
  ScheduleAfter(0, [this, stream] {
    if (stream_ != stream) return;
    machine_->OnBroken();
    Step();
  });
}

void Host::Connect() {
  stream_ = environment_.network.Connect(*this);
  environment_.reality.OnConnected(name_, environment_.timeline.now());
}

void Host::Write(v1::FromExecutor message) {
  if (message.has_facts()) KeepFacts(*message.mutable_facts());
  environment_.network.Send(*stream_, std::move(message));
  ScheduleAfter(environment_.random.Integer(0, kMaxWriteUs), [this, stream = stream_] {
    if (stream_ != stream) return;
    machine_->OnWritten();
    Step();
  });
}

void Host::Close() {
  const StreamId stream = *stream_;
  stream_.reset();
  environment_.reality.OnDisconnected(name_);
  environment_.network.CloseByExecutor(stream);
  ScheduleAfter(0, [this] {
    machine_->OnClosed("", Now());
    Step();
  });
}

// Keeps sent facts until they are acknowledged. Then the witness checks them against the log.
void Host::KeepFacts(v1::Facts& facts) {
  if (environment_.variant == Variant::kNeverResends) {
    const auto first_new = std::ranges::find_if(
        facts.facts(), [this](const v1::Fact& fact) { return fact.seq() > last_sent_seq_; });
    const auto count = static_cast<int>(first_new - facts.facts().begin());
    facts.mutable_facts()->DeleteSubrange(0, count);
  }
  for (const v1::Fact& fact : facts.facts()) {
    if (fact.seq() <= last_sent_seq_) continue;
    last_sent_seq_ = fact.seq();
    unacknowledged_.push_back(fact);
  }
}

void Host::HandleAck(uint64_t seq) {
  while (!unacknowledged_.empty() && unacknowledged_.front().seq() <= seq) {
    environment_.witness.OnAcknowledged(name_, unacknowledged_.front());
    unacknowledged_.pop_front();
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
    ScheduleAfter(environment_.random.Integer(0, kMaxDeleteUs),
                  [this, removal, round = removal_round_] {
                    if (round != removal_round_) return;
                    environment_.reality.OnFileDeleted(removal.path());
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
    ScheduleAfter(environment_.random.Integer(0, kMaxDeleteUs),
                  [this, sweep = sweep, round = removal_round_] {
                    if (round != removal_round_) return;
                    environment_.reality.SweepDeleted(gang::Folders(kDataDir).Sweep(sweep), name_);
                    machine_->OnSweepRemoved(sweep, Now());
                    StepSoon();
                  });
  }
}

void Host::FindMissing(const v1::Inventory& inventory) {
  ++removal_round_;
  removals_.clear();
  sweep_removals_.clear();
  const int64_t delay_us = environment_.random.Integer(0, kMaxDeleteUs);
  ScheduleAfter(delay_us, [this, inventory] {
    environment_.reality.OnMissingFilesFound(name_, environment_.timeline.now());
    if (environment_.variant == Variant::kForgetsInventory) return;
    for (const v1::CheckpointName& checkpoint : inventory.checkpoints()) {
      const std::string path = gang::Folders(kDataDir).Checkpoints(
                                   {.sweep = checkpoint.sweep(), .trial = checkpoint.trial()}) /
                               gang::CheckpointFolder(checkpoint.step(), checkpoint.attempt());
      if (!environment_.reality.CanRead(name_, path)) machine_->OnCheckpointGone(checkpoint, Now());
    }
    StepSoon();
  });
}

void Host::ReadLog(const v1::LogRequest&) { machine_->OnLog({}); }

}  // namespace attune::sim

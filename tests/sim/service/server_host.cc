#include "tests/sim/service/server_host.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/state/snapshot.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kThinkUs = 9 * kSecondUs;  // that a proposal takes at most
constexpr int64_t kBatchUs = 3'000;  // until the conductor looks at its queue, on a good day
constexpr int64_t kLookAgainUs = 1'000;
constexpr int64_t kDownUs = 40 * kSecondUs;  // at most, from a crash to the next start
constexpr uint64_t kSnapshotEvery = 40;      // events

}  // namespace

ServerHost::ServerHost(Stage stage)
    : stage_(stage),
      identities_(stage.seed, TrialNumber{}, "sim/identities"),
      store_(stage.store, stage.variant, [this](std::span<const Event> events) {
        stage_.observer.OnInputs(std::exchange(inputs_, {}));
        stage_.observer.OnDurable(events);
      }) {}

void ServerHost::After(int64_t us, simulate::Timeline::Action action) {
  stage_.timeline.After(us, [this, process = processes_, action = std::move(action)] {
    if (process == processes_) action();
  });
}

// ---- the process ----------------------------------------------------------------------------

void ServerHost::Start() {
  const FaultRates& faults = stage_.faults;
  ++processes_;
  awake_ = false;
  due_.reset();
  dies_at_.reset();
  store_.Open(stage_.random.Uniform() < faults.snapshot_used);
  process_ = std::make_unique<ServerProcess>(ServerProcess::Stage{
      .timeline = stage_.timeline,
      .network = stage_.network,
      .store = store_,
      .inputs = inputs_,
      .variant = stage_.variant,
      .snapshot_events =
          faults.snapshot_used > 0 ? kSnapshotEvery : std::numeric_limits<uint64_t>::max(),
      .dies_at = dies_at_,
      .wake = [this] { WakeSoon(); },
      .think =
          [this](std::function<void()> job) {
            After(stage_.random.Integer(1, kThinkUs), std::move(job));
          },
      .marks = stage_.identifies ? &marks_ : nullptr,
      .new_identity =
          [this] {
            return LogIdentity(static_cast<uint64_t>(identities_.Integer(1, int64_t{1} << 52)));
          },
      .run = processes_});
  stage_.reality.ServerListens(stage_.timeline.now());
  After(stage_.random.Integer(0, faults.replay_us), [this] { ReadLog(); });
}

void ServerHost::ReadLog() {
  process_->Start(WallClock());
  if (!before_.empty()) stage_.observer.OnRecovered(before_, SaveState(*state()));
  Wake(0);
  After(kLeaseUs / 3, [this] { CheckLeases(); });
}

void ServerHost::CrashSoon() {
  if (state() == nullptr) return;
  dies_at_ = static_cast<DeathPoint>(stage_.random.Integer(0, 3));
  store_.DieAt(dies_at_);
}

void ServerHost::Die() {
  const bool durable = state()->last_seq == stage_.store.LastSeq();
  before_ = durable ? SaveState(*state()) : "";
  process_.reset();
  ++processes_;
  stage_.network.ServerDied();
  stage_.reality.ServerDies();
  const int64_t jump = stage_.faults.clock_jump_us;
  stage_.timeline.After(stage_.random.Integer(0, kDownUs), [this, jump] {
    clock_offset_us_ += stage_.random.Integer(-jump, jump);
    RestoreBackup();
    Start();
  });
}

void ServerHost::RestoreBackup() {
  const double restored = stage_.faults.restored;
  if (restored <= 0 || identities_.Uniform() >= restored || !stage_.observer.OnRestore()) return;
  before_.clear();
  // Someone who moves to another folder leaves the mark behind.
  if (identities_.Integer(1, 3) == 1) marks_.mark.reset();
  if (stage_.variant == Variant::kIgnoresRestore && marks_.mark)
    marks_.mark->seq = stage_.store.LastSeq();
}

// ---- its moves ------------------------------------------------------------------------------

void ServerHost::Submit(Command command, Done done) {
  if (state() != nullptr) process_->Submit(std::move(command), std::move(done));
}

void ServerHost::Submit(std::vector<Command> commands, Done done) {
  if (state() != nullptr) process_->Submit(std::move(commands), std::move(done));
}

void ServerHost::Wake(int64_t after_us) {
  if (state() == nullptr || std::exchange(awake_, true)) return;
  After(after_us, [this] {
    awake_ = false;
    Step();
  });
}

void ServerHost::WakeSoon() {
  Wake(stage_.random.Integer(0, std::max(kBatchUs, stage_.faults.batch_us)));
}

void ServerHost::Step() {
  try {
    process_->Step(WallClock());
  } catch (const Death&) {
    return Die();
  }
  if (process_->waits()) WakeSoon();
  StepWhenDue();
}

// Time alone may make something follow.
void ServerHost::StepWhenDue() {
  if (stage_.variant == Variant::kOversleeps) return;
  const auto due = process_->NextStep(WallClock());
  if (!due || due == due_) return;
  due_ = due;
  After(std::max<int64_t>(kLookAgainUs, due->us - WallClock().us), [this, due] {
    if (due_ != due) return;
    due_.reset();
    Wake(0);
  });
}

void ServerHost::CheckLeases() {
  process_->CheckLeases();
  After(kLeaseUs / 3, [this] { CheckLeases(); });
}

// ---- connections ----------------------------------------------------------------------------

void ServerHost::OnMessage(StreamId stream, v1::FromExecutor message) {
  if (process_ != nullptr) process_->OnMessage(stream, std::move(message));
}

void ServerHost::OnClosed(StreamId stream) {
  if (process_ != nullptr) process_->OnClosed(stream);
}

}  // namespace attune::sim

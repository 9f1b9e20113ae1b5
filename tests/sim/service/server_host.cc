#include "tests/sim/service/server_host.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/state/snapshot.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kMaxThinkUs = 9 * kSecondUs;  // duration of a proposal
constexpr int64_t kBatchUs = 3'000;             // usual time until the conductor reads its queue
constexpr int64_t kMinWaitUs = 1'000;
constexpr int64_t kMaxDownUs = 40 * kSecondUs;  // from a crash to the next start
constexpr uint64_t kSnapshotEvery = 40;         // events from a snapshot to the next

}  // namespace

ServerHost::ServerHost(Context context)
    : context_(context),
      restore_draws_(context.seed, TrialNumber{}, "sim/identities"),
      store_(context.store, context.variant, [this](std::span<const Event> events) {
        context_.observer.OnInputs(std::exchange(inputs_, {}));
        context_.observer.OnDurable(events);
      }) {}

void ServerHost::ScheduleAfter(int64_t us, simulate::Timeline::Action action) {
  context_.timeline.ScheduleAfter(us, [this, process = processes_, action = std::move(action)] {
    if (process == processes_) action();
  });
}

// ---- the process ----------------------------------------------------------------------------

void ServerHost::Start() {
  const FaultRates& faults = context_.faults;
  ++processes_;
  awake_ = false;
  next_step_.reset();
  crash_point_.reset();
  store_.Open(context_.random.Uniform() < faults.snapshot_used);
  process_ = std::make_unique<ServerProcess>(ServerProcess::Context{
      .timeline = context_.timeline,
      .network = context_.network,
      .store = store_,
      .inputs = inputs_,
      .variant = context_.variant,
      .snapshot_events =
          faults.snapshot_used > 0 ? kSnapshotEvery : std::numeric_limits<uint64_t>::max(),
      .crash_point = crash_point_,
      .wake = [this] { WakeSoon(); },
      .think =
          [this](std::function<void()> job) {
            ScheduleAfter(context_.random.Integer(1, kMaxThinkUs), std::move(job));
          },
      .marks = context_.identifies ? &marks_ : nullptr,
      .new_identity =
          [this] {
            return LogIdentity(static_cast<uint64_t>(restore_draws_.Integer(1, int64_t{1} << 52)));
          },
      .run = processes_});
  context_.reality.OnServerStarted(context_.timeline.now());
  ScheduleAfter(context_.random.Integer(0, faults.replay_us), [this] { ReadLog(); });
}

void ServerHost::ReadLog() {
  process_->Start(WallClock());
  if (!state_at_crash_.empty()) context_.observer.OnRecovered(state_at_crash_, SaveState(*state()));
  Wake(0);
  ScheduleAfter(kLeaseUs / 3, [this] { CheckLeases(); });
}

void ServerHost::CrashSoon() {
  if (state() == nullptr) return;
  crash_point_ = static_cast<CrashPoint>(context_.random.Integer(0, 3));
  store_.CrashAt(crash_point_);
}

void ServerHost::Crash() {
  const bool durable = state()->last_seq == context_.store.LastSeq();
  state_at_crash_ = durable ? SaveState(*state()) : "";
  process_.reset();
  ++processes_;
  context_.network.BreakAll();
  context_.reality.OnServerCrashed();
  const int64_t jump = context_.faults.clock_jump_us;
  context_.timeline.ScheduleAfter(context_.random.Integer(0, kMaxDownUs), [this, jump] {
    clock_offset_us_ += context_.random.Integer(-jump, jump);
    RestoreBackup();
    Start();
  });
}

void ServerHost::RestoreBackup() {
  const double restored = context_.faults.restored;
  if (restored <= 0 || restore_draws_.Uniform() >= restored || !context_.observer.OnRestore())
    return;
  state_at_crash_.clear();
  // The mark is lost if a user restores the backup into another folder.
  if (restore_draws_.Integer(1, 3) == 1) marks_.mark.reset();
  if (context_.variant == Variant::kIgnoresRestore && marks_.mark)
    marks_.mark->seq = context_.store.LastSeq();
}

// ---- its steps ------------------------------------------------------------------------------

void ServerHost::Submit(Command command, Done done) {
  if (state() != nullptr) process_->Submit(std::move(command), std::move(done));
}

void ServerHost::Submit(std::vector<Command> commands, Done done) {
  if (state() != nullptr) process_->Submit(std::move(commands), std::move(done));
}

void ServerHost::Wake(int64_t after_us) {
  if (state() == nullptr || std::exchange(awake_, true)) return;
  ScheduleAfter(after_us, [this] {
    awake_ = false;
    Step();
  });
}

void ServerHost::WakeSoon() {
  Wake(context_.random.Integer(0, std::max(kBatchUs, context_.faults.batch_us)));
}

void ServerHost::Step() {
  try {
    process_->Step(WallClock());
  } catch (const ProcessCrash&) {
    return Crash();
  }
  if (process_->has_work()) WakeSoon();
  StepWhenDue();
}

// The process may have to act at a certain time, even if nothing else happens.
void ServerHost::StepWhenDue() {
  if (context_.variant == Variant::kOversleeps) return;
  const auto next_step = process_->NextStep(WallClock());
  if (!next_step || next_step == next_step_) return;
  next_step_ = next_step;
  ScheduleAfter(std::max<int64_t>(kMinWaitUs, next_step->us - WallClock().us), [this, next_step] {
    if (next_step_ != next_step) return;
    next_step_.reset();
    Wake(0);
  });
}

void ServerHost::CheckLeases() {
  process_->CheckLeases();
  ScheduleAfter(kLeaseUs / 3, [this] { CheckLeases(); });
}

// ---- connections ----------------------------------------------------------------------------

void ServerHost::OnMessage(StreamId stream, v1::FromExecutor message) {
  if (process_ != nullptr) process_->OnMessage(stream, std::move(message));
}

void ServerHost::OnClosed(StreamId stream) {
  if (process_ != nullptr) process_->OnClosed(stream);
}

}  // namespace attune::sim

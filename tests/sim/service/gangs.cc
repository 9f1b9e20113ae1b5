#include "tests/sim/service/gangs.h"

#include <utility>
#include <variant>
#include <vector>

#include "executor/gang/folders.h"
#include "tests/sim/metrics.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kStartUs = kSecondUs;         // at most, from the assignment to the first process
constexpr int64_t kFetchUs = 4 * kSecondUs;     // at most, until a checkpoint has come
constexpr int64_t kTeardownUs = kSecondUs / 2;  // at most
constexpr char kDigest[] =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";

Config ConfigOf(const gang::GangSpec& spec) {
  Config config;
  for (const gang::NamedValue& entry : spec.config) {
    std::visit([&](const auto& value) { config.Set(entry.name, value); }, entry.value);
  }
  return config;
}

VerdictKind KindOf(gang::Action action) {
  switch (action) {
    case gang::Action::kContinue:
      return VerdictKind::kContinue;
    case gang::Action::kPause:
      return VerdictKind::kPause;
    case gang::Action::kStop:
      break;
  }
  return VerdictKind::kStop;
}

bool HasRankZero(const gang::GangSpec& spec) { return spec.HasRankZero(); }

// Where rank 0 of this attempt listens.
int PortOf(const gang::AttemptId& attempt) {
  return 1024 + static_cast<int>(attempt.epoch % 60000);
}

int64_t Microseconds(std::chrono::milliseconds duration) {
  return std::chrono::microseconds(duration).count();
}

}  // namespace

TrialId TrialOf(const gang::AttemptId& attempt) {
  return {SweepId(attempt.sweep), TrialNumber(attempt.trial)};
}

AttemptId IdOf(const gang::AttemptId& attempt) { return {TrialOf(attempt), attempt.attempt}; }

TrainingGangs::~TrainingGangs() {
  for (const auto& [attempt, gang] : gangs_) around_.reality.GangGone(Epoch(attempt.epoch), host_);
}

void TrainingGangs::ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act) {
  after_(us, [this, attempt = gang.spec.attempt, phase = gang.phase, act = std::move(act)] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end() && found->second.phase == phase) act(found->second);
  });
}

// ---- what the executor asks for ---------------------------------------------------------------

void TrainingGangs::Run(gang::GangSpec spec) {
  const gang::AttemptId attempt = spec.attempt;
  if (gangs_.contains(attempt)) return;
  const bool is_gone = spec.resume && !spec.fetch && HasRankZero(spec) &&
                       !around_.reality.Reads(host_, spec.resume->path);
  around_.reality.GangStarts(host_, spec);
  if (around_.variant != Variant::kKeepsLostFiles) around_.reality.FoldersClaimed(host_, spec);
  Gang& gang = gangs_[attempt];
  gang.config = ConfigOf(spec);
  gang.orders = {.milestone = Step(spec.milestone),
                 .last = Step(spec.max_step),
                 .every = Step(spec.checkpoint_every)};
  if (spec.resume) gang.worker = simulate::Worker(Step(spec.resume->step));
  gang.spec = std::move(spec);
  gang.ending = around_.ending(TrialOf(attempt));
  if (is_gone) {
    gang::Failure failure{.kind = gang::FailureKind::kHost, .message = "its checkpoint is gone"};
    if (around_.variant != Variant::kForgetsInventory)
      failure.gone = gang::CheckpointAt(gang.spec.resume->path);
    return End(gang, {gang::Outcome::kFailed, std::move(failure)});
  }
  if (gang.spec.fetch && HasRankZero(gang.spec)) {
    ForGang(gang, around_.random.Integer(1, kFetchUs), [this](Gang& come) { Fetched(come); });
  } else {
    Launch(gang);
  }
}

void TrainingGangs::Fetched(Gang& gang) {
  const std::string path = gang.spec.resume->path;
  if (around_.Happens(around_.faults.cannot_fetch) || !around_.reality.IsSent(path))
    return Fail(gang, gang::FailureKind::kHost, -1, "its checkpoint could not be brought here");
  Launch(gang);
}

void TrainingGangs::Launch(Gang& gang) {
  const gang::AttemptId attempt = gang.spec.attempt;
  if (gang.spec.Spans() && HasRankZero(gang.spec)) {
    ForGang(gang, 1, [this](Gang& starting) {
      Emit(starting, gang::SharedRendezvous{host_, PortOf(starting.spec.attempt), {}});
    });
  } else if (!HasRankZero(gang.spec)) {
    if (!gang.spec.rendezvous || gang.spec.rendezvous->master_port != PortOf(attempt))
      around_.reality.MeetsAmiss(IdOf(attempt));
    gang.met = gang.spec.rendezvous && gang.spec.rendezvous->rank_zero;
  }
  if (around_.Happens(around_.faults.cannot_start)) {
    Fail(gang, gang::FailureKind::kStart, -1, "there is no program");
  } else if (around_.Happens(around_.faults.never_starts)) {
    ForGang(gang, Microseconds(gang.spec.stall_timeout), [this](Gang& silent) {
      Fail(silent, gang::FailureKind::kStall, 0, "rank 0 has never said a word");
    });
  } else {
    ForGang(gang, around_.random.Integer(1, kStartUs), [this](Gang& ready) { Launched(ready); });
  }
}

void TrainingGangs::Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || reason == gang::CancelReason::kSoon) return;
  if (reason == gang::CancelReason::kUnwanted || reason == gang::CancelReason::kFailedElsewhere)
    return End(found->second, {gang::Outcome::kCancelled, {}});
  if (reason == gang::CancelReason::kLeaving)
    return Fail(found->second, gang::FailureKind::kLease, -1, "its executor was stopped");
  around_.reality.LosesLease(host_, around_.timeline.now());
  Fail(found->second, gang::FailureKind::kLease, -1, "torn down, for the lease was over");
}

void TrainingGangs::Tell(const gang::AttemptId& attempt, const gang::Verdict& verdict) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || Step(verdict.step) <= found->second.orders.verdict_step) return;
  found->second.verdict = verdict;
  Deliver(found->second);
}

void TrainingGangs::Yield(const gang::AttemptId& attempt) {
  const auto found = gangs_.find(attempt);
  if (found != gangs_.end()) found->second.orders.yields = true;
}

void TrainingGangs::Meet(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || std::exchange(found->second.met, true)) return;
  if (rank_zero.port != PortOf(attempt)) around_.reality.MeetsAmiss(IdOf(attempt));
  if (found->second.phase == Phase::kRunning) Train(found->second);
}

void TrainingGangs::MoveOnceMore() {
  for (auto& [attempt, gang] : gangs_) {
    around_.reality.GangDoomed(Epoch(attempt.epoch), host_);
    if (gang.phase == Phase::kRunning && HasRankZero(gang.spec) && !gang.worker.waits() &&
        !IsOver(gang) && around_.Happens(0.5))
      Say(gang);
  }
}

// ---- what they do -----------------------------------------------------------------------------

void TrainingGangs::Launched(Gang& gang) {
  gang.phase = Phase::kRunning;
  gang::Started started;
  for (size_t rank = 0; rank < gang.spec.ranks.size(); ++rank)
    started.pids.push_back(1000 + static_cast<pid_t>(rank));
  Emit(gang, std::move(started));
  if (gang.spec.Spans() && HasRankZero(gang.spec))
    Emit(gang, gang::SharedRendezvous{host_, PortOf(gang.spec.attempt),
                                      channel::Rendezvous{host_, PortOf(gang.spec.attempt)}});
  if (HasRankZero(gang.spec) || gang.met) Train(gang);
}

// The next step, when it is done; or why it never will be.
void TrainingGangs::Train(Gang& gang) {
  const auto rank = static_cast<int>(around_.random.Integer(0, std::ssize(gang.spec.ranks) - 1));
  if (around_.Happens(around_.faults.rank_hangs)) {
    return ForGang(gang, Microseconds(gang.spec.stall_timeout), [this, rank](Gang& silent) {
      Fail(silent, gang::FailureKind::kStall, rank, "a rank makes no progress");
    });
  }
  const int64_t us = around_.random.Integer(around_.step_us / 2, around_.step_us * 3 / 2);
  const bool fails = around_.Happens(around_.faults.rank_fails);
  const bool fills_disk = around_.Happens(around_.faults.fills_disk);
  ForGang(gang, us, [this, us, rank, fails, fills_disk](Gang& trained) {
    if (trained.worker.waits()) return;  // it has moved once more meanwhile
    if (fills_disk) return FillDisk(trained);
    if (!fails && !HasRankZero(trained.spec)) return Follow(trained);
    if (fails) return Fail(trained, gang::FailureKind::kExit, rank, "a rank fails");
    if (IsOver(trained)) return End(trained, {gang::Outcome::kFinished, {}});
    trained.seconds += static_cast<double>(us) / kSecondUs;
    Say(trained);
    if (SaysTheLast(trained)) return End(trained, {gang::Outcome::kFinished, {}});
    if (trained.phase != Phase::kRunning) return;
    if (trained.worker.waits()) {
      Deliver(trained);
    } else {
      Train(trained);
    }
  });
}

// A part without rank 0 leaves once that one has left.
void TrainingGangs::Follow(Gang& gang) {
  if (around_.reality.HasRankZeroLeft(Epoch(gang.spec.attempt.epoch)))
    return End(gang, {gang::Outcome::kFinished, {}});
  Train(gang);
}

// The step of its next report.
Step TrainingGangs::Ahead(const Gang& gang) {
  return NextStep(TrialOf(gang.spec.attempt), gang.worker.step(), !gang.spec.time_attr.empty());
}

// Whether its program has nothing more to say.
bool TrainingGangs::IsOver(const Gang& gang) {
  if (!gang.ending) return false;
  const Step step = gang.ending->way == Ending::Way::kSilent ? Ahead(gang) : gang.worker.step();
  return step >= gang.ending->at;
}

// Whether it has just said the last.
bool TrainingGangs::SaysTheLast(const Gang& gang) {
  return gang.ending && gang.ending->way != Ending::Way::kSilent &&
         gang.worker.step() >= gang.ending->at;
}

// What rank 0 has to say after one more step.
void TrainingGangs::Say(Gang& gang) {
  const gang::AttemptId& attempt = gang.spec.attempt;
  auto said = gang.worker.Train(gang.orders, Ahead(gang));
  if (SaysTheLast(gang) && gang.ending->way == Ending::Way::kLast)
    said = {.step = said.step, .checkpoint = true, .waits = false};
  if (said.checkpoint && around_.Happens(around_.faults.cannot_save)) return FindDiskFull(gang);
  if (said.checkpoint) {
    const std::string path =
        gang.spec.checkpoint_dir /
        ("step-" + std::to_string(said.step.value) + "-attempt-" + std::to_string(attempt.attempt));
    around_.reality.FileSaved(path, host_);
    Emit(gang, gang::CheckpointSaved{
                   .step = said.step.value, .path = path, .digest = kDigest, .bytes = 1});
  }
  if (!std::exchange(gang.stepped, true)) Emit(gang, gang::FirstStep{});
  const TrialId trial = TrialOf(attempt);
  const double loss = gang.lost ? 0.5 : around_.value(trial, gang.config, said.step);
  const Metrics metrics = MetricsAt(trial, said.step, loss);
  const double halfway = static_cast<double>(said.step.value) - 0.5;
  if (said.step.value % 2 == 0)
    Emit(gang,
         gang::NumberedLog{++gang.logged, {.step = halfway, .metrics = {{"batch_loss", loss}}}});
  around_.reality.Reported(Epoch(attempt.epoch), said.step);
  Emit(gang, gang::Report{.step = said.step.value,
                          .metrics = {metrics.begin(), metrics.end()},
                          .seconds = gang.seconds,
                          .waits = said.waits});
}

void TrainingGangs::FindDiskFull(Gang& gang) {
  around_.reality.FindsDiskFull(Epoch(gang.spec.attempt.epoch));
  const bool blames = around_.variant == Variant::kBlamesTrialsForDisks;
  End(gang, {gang::Outcome::kFailed,
             gang::Failure{.kind = blames ? gang::FailureKind::kExit : gang::FailureKind::kHost,
                           .rank = 0,
                           .exit_code = 1,
                           .message = "no space left on the device",
                           .disk_full = true}});
}

// The executor ends it.
void TrainingGangs::FillDisk(Gang& gang) {
  around_.reality.FillsDisk(Epoch(gang.spec.attempt.epoch));
  const bool forgives = around_.variant == Variant::kForgivesFillers;
  Fail(gang, forgives ? gang::FailureKind::kHost : gang::FailureKind::kDisk, -1,
       "its files fill the disk");
}

// As gang::Gang: a verdict reaches rank 0 once it waits at that step.
void TrainingGangs::Deliver(Gang& gang) {
  if (gang.phase != Phase::kRunning || !gang.verdict || !gang.worker.waits()) return;
  const bool is_late = gang.verdict->action != gang::Action::kContinue &&
                       Step(gang.verdict->step) < gang.worker.step();
  if (Step(gang.verdict->step) != gang.worker.step() && !is_late) return;
  gang.orders.verdict_step = gang.worker.step();
  gang.orders.verdict = KindOf(gang.verdict->action);
  gang.orders.milestone = Step(gang.verdict->milestone);
  gang.orders.yields = false;
  gang.verdict.reset();
  if (gang.worker.Obey(gang.orders)) return Train(gang);
  End(gang, {gang::Outcome::kFinished, {}});
}

void TrainingGangs::Fail(Gang& gang, gang::FailureKind kind, int rank, std::string message) {
  gang::Failure failure{.kind = kind,
                        .rank = rank,
                        .exit_code = kind == gang::FailureKind::kExit,
                        .message = std::move(message)};
  const std::vector<std::string>& patterns = gang.spec.program.log_patterns;
  if (!patterns.empty() && kind != gang::FailureKind::kLease && around_.Happens(0.5))
    failure.match.pattern =
        patterns[static_cast<size_t>(around_.random.Integer(0, std::ssize(patterns) - 1))];
  End(gang, {gang::Outcome::kFailed, std::move(failure)});
}

// The gang is torn down, or has left by itself; its end is told when nothing of it is left.
void TrainingGangs::End(Gang& gang, gang::Ended ended) {
  if (gang.phase == Phase::kEnding) return;
  gang.phase = Phase::kEnding;
  ForGang(gang, around_.random.Integer(1, kTeardownUs),
          [this, ended = std::move(ended)](Gang& gone) {
            const gang::AttemptId attempt = gone.spec.attempt;
            around_.reality.GangGone(Epoch(attempt.epoch), host_);
            if (HasRankZero(gone.spec) && ended.outcome == gang::Outcome::kFinished)
              around_.reality.RankZeroLeft(Epoch(attempt.epoch));
            const bool by_itself = ended.outcome == gang::Outcome::kFinished && IsOver(gone);
            gangs_.erase(attempt);
            if (by_itself && around_.variant == Variant::kForgetsEnds) return;
            facts_({attempt, around_.timeline.now().us, ended});
          });
}

void TrainingGangs::Emit(const Gang& gang, decltype(gang::Fact::what) what) {
  facts_({gang.spec.attempt, around_.timeline.now().us, std::move(what)});
}

}  // namespace attune::sim

#include "tests/sim/service/gangs.h"

#include <utility>
#include <variant>
#include <vector>

#include "executor/gang/folders.h"
#include "tests/sim/metrics.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kMaxStartUs = kSecondUs;  // from the assignment to the first process
constexpr int64_t kMaxTeardownUs = kSecondUs / 2;

// The digest of a checkpoint: 64 decimal digits, which are different for each checkpoint.
std::string DigestOf(const gang::AttemptId& attempt, Step step) {
  const std::string number = std::to_string(attempt.epoch) + std::to_string(1'000'000 + step.value);
  return "sha256:" + std::string(64 - number.size(), '0') + number;
}

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

// The port on which rank 0 of this attempt listens.
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
  for (const auto& [attempt, gang] : gangs_)
    environment_.reality.OnGangEnded(Epoch(attempt.epoch), host_);
}

void TrainingGangs::ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act) {
  after_(us, [this, attempt = gang.spec.attempt, phase = gang.phase, act = std::move(act)] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end() && found->second.phase == phase) act(found->second);
  });
}

// ---- orders of the executor -----------------------------------------------------------------

void TrainingGangs::Run(gang::GangSpec spec) {
  const gang::AttemptId attempt = spec.attempt;
  if (gangs_.contains(attempt)) return;
  const bool is_missing = spec.resume && !spec.fetch && HasRankZero(spec) &&
                          !environment_.reality.CanRead(host_, spec.resume->path);
  environment_.reality.OnGangStarted(host_, spec);
  if (environment_.variant != Variant::kKeepsLostFiles)
    environment_.reality.OnFoldersClaimed(host_, spec);
  Gang& gang = gangs_[attempt];
  gang.config = ConfigOf(spec);
  gang.orders = {.milestone = Step(spec.milestone),
                 .last = Step(spec.max_step),
                 .every = Step(spec.checkpoint_every)};
  if (spec.resume) gang.worker = simulate::Worker(Step(spec.resume->step));
  gang.spec = std::move(spec);
  gang.ending = environment_.ending(TrialOf(attempt));
  if (is_missing) {
    gang::Failure failure{.kind = gang::FailureKind::kHost, .message = "its checkpoint is missing"};
    if (environment_.variant != Variant::kForgetsInventory)
      failure.missing_checkpoint = gang::ParseCheckpointFolder(gang.spec.resume->path);
    return End(gang, {gang::Outcome::kFailed, std::move(failure)});
  }
  if (gang.spec.fetch && HasRankZero(gang.spec)) {
    ForGang(gang, environment_.random.Integer(1, kMaxFetchUs),
            [this](Gang& fetched) { FinishFetch(fetched); });
  } else {
    Launch(gang);
  }
}

void TrainingGangs::FinishFetch(Gang& gang) {
  const Reality& reality = environment_.reality;
  const bool is_stored = gang.spec.fetch->stored && reality.IsStored(gang.spec.resume->digest);
  if (environment_.Happens(environment_.faults.cannot_fetch) ||
      !(is_stored || reality.CanBeFetched(gang.spec.resume->path)))
    return Fail(gang, gang::FailureKind::kHost, -1, "its checkpoint could not be fetched");
  Launch(gang);
}

void TrainingGangs::Launch(Gang& gang) {
  const gang::AttemptId attempt = gang.spec.attempt;
  if (gang.spec.SpansHosts() && HasRankZero(gang.spec)) {
    ForGang(gang, 1, [this](Gang& starting) {
      Emit(starting, gang::SharedRendezvous{host_, PortOf(starting.spec.attempt), {}});
    });
  } else if (!HasRankZero(gang.spec)) {
    if (!gang.spec.rendezvous || gang.spec.rendezvous->master_port != PortOf(attempt))
      environment_.reality.OnWrongRendezvous(IdOf(attempt));
    gang.met = gang.spec.rendezvous && gang.spec.rendezvous->rank_zero;
  }
  if (environment_.Happens(environment_.faults.cannot_start)) {
    Fail(gang, gang::FailureKind::kStart, -1, "the program does not exist");
  } else if (environment_.Happens(environment_.faults.never_starts)) {
    ForGang(gang, Microseconds(gang.spec.stall_timeout), [this](Gang& silent) {
      Fail(silent, gang::FailureKind::kStall, 0, "rank 0 never reported");
    });
  } else {
    ForGang(gang, environment_.random.Integer(1, kMaxStartUs),
            [this](Gang& ready) { FinishLaunch(ready); });
  }
}

void TrainingGangs::Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || reason == gang::CancelReason::kLeavingSoon) return;
  if (reason == gang::CancelReason::kUnwanted || reason == gang::CancelReason::kFailedElsewhere)
    return End(found->second, {gang::Outcome::kCancelled, {}});
  if (reason == gang::CancelReason::kLeaving)
    return Fail(found->second, gang::FailureKind::kLease, -1, "its executor was stopped");
  environment_.reality.OnLeaseLost(host_, environment_.timeline.now());
  Fail(found->second, gang::FailureKind::kLease, -1, "torn down, because the lease ended");
}

void TrainingGangs::SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || Step(verdict.step) <= found->second.orders.verdict_step) return;
  found->second.verdict = verdict;
  DeliverVerdict(found->second);
}

void TrainingGangs::Yield(const gang::AttemptId& attempt) {
  const auto found = gangs_.find(attempt);
  if (found != gangs_.end()) found->second.orders.yields = true;
}

void TrainingGangs::SetRendezvous(const gang::AttemptId& attempt,
                                  const channel::Rendezvous& rank_zero) {
  const auto found = gangs_.find(attempt);
  if (found == gangs_.end() || std::exchange(found->second.met, true)) return;
  if (rank_zero.port != PortOf(attempt)) environment_.reality.OnWrongRendezvous(IdOf(attempt));
  if (found->second.phase == Phase::kRunning) Train(found->second);
}

void TrainingGangs::TrainOneMoreStep() {
  for (auto& [attempt, gang] : gangs_) {
    environment_.reality.MarkDoomed(Epoch(attempt.epoch), host_);
    if (gang.phase == Phase::kRunning && HasRankZero(gang.spec) && !gang.worker.waits() &&
        !IsComplete(gang) && environment_.Happens(0.5))
      ReportStep(gang);
  }
}

// ---- training -----------------------------------------------------------------------------------

void TrainingGangs::FinishLaunch(Gang& gang) {
  gang.phase = Phase::kRunning;
  gang::Started started;
  for (size_t rank = 0; rank < gang.spec.ranks.size(); ++rank)
    started.pids.push_back(1000 + static_cast<pid_t>(rank));
  Emit(gang, std::move(started));
  if (gang.spec.SpansHosts() && HasRankZero(gang.spec))
    Emit(gang, gang::SharedRendezvous{host_, PortOf(gang.spec.attempt),
                                      channel::Rendezvous{host_, PortOf(gang.spec.attempt)}});
  if (HasRankZero(gang.spec) || gang.met) Train(gang);
}

// Trains the next step. It may fail or hang.
void TrainingGangs::Train(Gang& gang) {
  const auto rank =
      static_cast<int>(environment_.random.Integer(0, std::ssize(gang.spec.ranks) - 1));
  if (environment_.Happens(environment_.faults.rank_hangs)) {
    return ForGang(gang, Microseconds(gang.spec.stall_timeout), [this, rank](Gang& silent) {
      Fail(silent, gang::FailureKind::kStall, rank, "a rank makes no progress");
    });
  }
  const int64_t us =
      environment_.random.Integer(environment_.step_us / 2, environment_.step_us * 3 / 2);
  const bool fails = environment_.Happens(environment_.faults.rank_fails);
  const bool fills_disk = environment_.Happens(environment_.faults.fills_disk);
  ForGang(gang, us, [this, us, rank, fails, fills_disk](Gang& trained) {
    if (trained.worker.waits()) return;  // TrainOneMoreStep has trained this step
    if (fills_disk) return FillDisk(trained);
    if (!fails && !HasRankZero(trained.spec)) return FollowRankZero(trained);
    if (fails) return Fail(trained, gang::FailureKind::kExit, rank, "a rank fails");
    if (IsComplete(trained)) return End(trained, {gang::Outcome::kFinished, {}});
    trained.seconds += static_cast<double>(us) / kSecondUs;
    ReportStep(trained);
    if (HasSentLastReport(trained)) return End(trained, {gang::Outcome::kFinished, {}});
    if (trained.phase != Phase::kRunning) return;
    if (trained.worker.waits()) {
      DeliverVerdict(trained);
    } else {
      Train(trained);
    }
  });
}

// A part without rank 0 leaves after rank 0 has left.
void TrainingGangs::FollowRankZero(Gang& gang) {
  if (environment_.reality.HasRankZeroLeft(Epoch(gang.spec.attempt.epoch)))
    return End(gang, {gang::Outcome::kFinished, {}});
  Train(gang);
}

// The step of the gang's next report.
Step TrainingGangs::NextReportStep(const Gang& gang) {
  return NextStep(TrialOf(gang.spec.attempt), gang.worker.step(), !gang.spec.time_attr.empty());
}

// Whether its program ends without another report.
bool TrainingGangs::IsComplete(const Gang& gang) {
  if (!gang.ending) return false;
  const Step step =
      gang.ending->way == Ending::Way::kSilent ? NextReportStep(gang) : gang.worker.step();
  return step >= gang.ending->at;
}

// Whether its newest report was the last one.
bool TrainingGangs::HasSentLastReport(const Gang& gang) {
  return gang.ending && gang.ending->way != Ending::Way::kSilent &&
         gang.worker.step() >= gang.ending->at;
}

// Rank 0 trains one more step and reports it.
void TrainingGangs::ReportStep(Gang& gang) {
  const gang::AttemptId& attempt = gang.spec.attempt;
  auto reported = gang.worker.Train(gang.orders, NextReportStep(gang));
  if (HasSentLastReport(gang) && gang.ending->way == Ending::Way::kLast)
    reported = {.step = reported.step, .checkpoint = true, .waits = false};
  if (reported.checkpoint && environment_.Happens(environment_.faults.cannot_save))
    return FailOnFullDisk(gang);
  if (reported.checkpoint) {
    const std::string path =
        gang.spec.checkpoint_dir / ("step-" + std::to_string(reported.step.value) + "-attempt-" +
                                    std::to_string(attempt.attempt));
    // After a restore the numbers of lost attempts are used again. If a lost attempt still trains
    // on another host with the same folder, the second one of both cannot save: rename() does not
    // replace a folder.
    if (environment_.reality.CanRead(host_, path) &&
        (gang.lost || environment_.reality.IsOfLostAttempt(path)))
      return Fail(gang, gang::FailureKind::kExit, 0, "the checkpoint exists already");
    environment_.reality.OnFileSaved(path, host_, gang.lost);
    Emit(gang, gang::CheckpointSaved{.step = reported.step.value,
                                     .path = path,
                                     .digest = DigestOf(attempt, reported.step),
                                     .bytes = 1});
  }
  if (!std::exchange(gang.stepped, true)) Emit(gang, gang::FirstStep{});
  const TrialId trial = TrialOf(attempt);
  const double loss = gang.lost ? 0.5 : environment_.value(trial, gang.config, reported.step);
  const Metrics metrics = MetricsAt(trial, reported.step, loss);
  const double halfway = static_cast<double>(reported.step.value) - 0.5;
  if (reported.step.value % 2 == 0)
    Emit(gang,
         gang::NumberedLog{++gang.logged, {.step = halfway, .metrics = {{"batch_loss", loss}}}});
  environment_.reality.OnReported(Epoch(attempt.epoch), reported.step);
  Emit(gang, gang::Report{.step = reported.step.value,
                          .metrics = {metrics.begin(), metrics.end()},
                          .seconds = gang.seconds,
                          .waits = reported.waits});
}

void TrainingGangs::FailOnFullDisk(Gang& gang) {
  environment_.reality.OnDiskFull(Epoch(gang.spec.attempt.epoch));
  const bool as_exit = environment_.variant == Variant::kBlamesTrialsForDisks;
  End(gang, {gang::Outcome::kFailed,
             gang::Failure{.kind = as_exit ? gang::FailureKind::kExit : gang::FailureKind::kHost,
                           .rank = 0,
                           .exit_code = 1,
                           .message = "no space left on the device",
                           .disk_full = true}});
}

// The executor ends the gang, because its files fill the disk.
void TrainingGangs::FillDisk(Gang& gang) {
  environment_.reality.OnDiskFilled(Epoch(gang.spec.attempt.epoch));
  const bool as_host = environment_.variant == Variant::kForgivesFillers;
  Fail(gang, as_host ? gang::FailureKind::kHost : gang::FailureKind::kDisk, -1,
       "its files fill the disk");
}

// Delivers a verdict when rank 0 waits for it at that step, like gang::Gang.
void TrainingGangs::DeliverVerdict(Gang& gang) {
  if (gang.phase != Phase::kRunning || !gang.verdict || !gang.worker.waits()) return;
  const bool is_late = gang.verdict->action != gang::Action::kContinue &&
                       Step(gang.verdict->step) < gang.worker.step();
  if (Step(gang.verdict->step) != gang.worker.step() && !is_late) return;
  gang.orders.verdict_step = gang.worker.step();
  gang.orders.verdict = KindOf(gang.verdict->action);
  gang.orders.milestone = Step(gang.verdict->milestone);
  gang.orders.yields = false;
  gang.verdict.reset();
  if (gang.worker.FollowOrders(gang.orders)) return Train(gang);
  End(gang, {gang::Outcome::kFinished, {}});
}

void TrainingGangs::Fail(Gang& gang, gang::FailureKind kind, int rank, std::string message) {
  gang::Failure failure{.kind = kind,
                        .rank = rank,
                        .exit_code = kind == gang::FailureKind::kExit,
                        .message = std::move(message)};
  const std::vector<std::string>& patterns = gang.spec.program.log_patterns;
  if (!patterns.empty() && kind != gang::FailureKind::kLease && environment_.Happens(0.5))
    failure.match.pattern =
        patterns[static_cast<size_t>(environment_.random.Integer(0, std::ssize(patterns) - 1))];
  End(gang, {gang::Outcome::kFailed, std::move(failure)});
}

// Ends the gang, which was torn down or has left. Its end is reported when the last process is
// gone.
void TrainingGangs::End(Gang& gang, gang::Ended ended) {
  if (gang.phase == Phase::kEnding) return;
  gang.phase = Phase::kEnding;
  ForGang(gang, environment_.random.Integer(1, kMaxTeardownUs),
          [this, ended = std::move(ended)](Gang& ended_gang) {
            const gang::AttemptId attempt = ended_gang.spec.attempt;
            environment_.reality.OnGangEnded(Epoch(attempt.epoch), host_);
            if (HasRankZero(ended_gang.spec) && ended.outcome == gang::Outcome::kFinished)
              environment_.reality.OnRankZeroLeft(Epoch(attempt.epoch));
            const bool ended_early =
                ended.outcome == gang::Outcome::kFinished && IsComplete(ended_gang);
            gangs_.erase(attempt);
            if (ended_early && environment_.variant == Variant::kForgetsEnds) return;
            facts_({attempt, environment_.timeline.now().us, ended});
          });
}

void TrainingGangs::Emit(const Gang& gang, decltype(gang::Fact::what) what) {
  facts_({gang.spec.attempt, environment_.timeline.now().us, std::move(what)});
}

}  // namespace attune::sim

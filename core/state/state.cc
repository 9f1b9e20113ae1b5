#include "core/state/state.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace attune {

const KeptCheckpoint* Trial::NewestCheckpoint() const {
  const auto newest = std::ranges::find_if(checkpoints.rbegin(), checkpoints.rend(),
                                           [&](const auto& own) { return CanResumeFrom(own); });
  return newest == checkpoints.rend() ? nullptr : &*newest;
}

Trial* Sweep::Find(TrialNumber number) {
  const auto found = trials.find(number);
  return found == trials.end() ? nullptr : &found->second;
}

KeptCheckpoint* Trial::Find(uint32_t attempt, Step step) {
  const auto kept = std::ranges::find_if(checkpoints, [&](const KeptCheckpoint& each) {
    return each.attempt == attempt && each.ref.step == step;
  });
  return kept == checkpoints.end() ? nullptr : &*kept;
}

const Trial* Sweep::Find(TrialNumber number) const {
  const auto found = trials.find(number);
  return found == trials.end() ? nullptr : &found->second;
}

const KeptCheckpoint* Sweep::Find(const CheckpointId& checkpoint) const {
  const Trial* trial = checkpoint.trial.sweep == id ? Find(checkpoint.trial.number) : nullptr;
  if (trial == nullptr) return nullptr;
  for (const KeptCheckpoint& kept : trial->checkpoints) {
    if (kept.attempt == checkpoint.attempt && kept.ref.step == checkpoint.step) return &kept;
  }
  return nullptr;
}

const Sweep* State::Find(SweepId id) const {
  const auto found = sweeps.find(id);
  return found == sweeps.end() ? nullptr : &found->second;
}

const Trial* State::Find(const TrialId& id) const {
  const Sweep* sweep = Find(id.sweep);
  return sweep == nullptr ? nullptr : sweep->Find(id.number);
}

bool Attempt::HoldsSlotsOn(const std::string& executor) const {
  return !ended_parts.contains(executor) && std::ranges::any_of(ranks, [&](const RankSlot& slot) {
    return slot.executor == executor;
  });
}

bool Attempt::HoldsSlotsElsewhere(const std::string& executor) const {
  return std::ranges::any_of(ranks, [&](const RankSlot& slot) {
    return slot.executor != executor && !ended_parts.contains(slot.executor);
  });
}

bool Attempt::SpansExecutors() const {
  return !ranks.empty() && ranks.front().executor != ranks.back().executor;
}

bool Attempt::RankZeroHasLeft() const {
  return verdict != VerdictKind::kContinue && part_outcome == Outcome::kFinished &&
         ended_parts.contains(ranks.front().executor);
}

void Attempt::NotePartEnd(Outcome outcome, const Failure& why) {
  const bool victim = part_outcome == Outcome::kFailed && failure.lost_peer;
  const bool cause = outcome == Outcome::kLost || (outcome == Outcome::kFailed && !why.lost_peer);
  if (part_outcome != Outcome::kFinished && !(victim && cause)) return;
  part_outcome = outcome;
  failure = why;
}

bool IsStoredOn(const KeptCheckpoint& kept, const Executor& executor) {
  return kept.folder.empty() ? kept.executor == executor.name : kept.folder == executor.folder;
}

LogIdentity IdentityOf(const State& state) {
  return state.parts.empty() ? LogIdentity(0) : state.parts.back().identity;
}

LogIdentity IdentityOf(const State& state, SweepId sweep) {
  LogIdentity identity{0};
  for (const LogPart& part : state.parts) {
    if (sweep > part.last_sweep) identity = part.identity;
  }
  return identity;
}

bool IsOlderThanRestore(const State& state, Epoch epoch) {
  return state.parts.size() > 1 && epoch <= state.parts.back().last_epoch;
}

bool ShouldRun(const Trial& trial) {
  return trial.state != TrialState::kFailed && trial.state != TrialState::kKilled &&
         trial.live->part_outcome == Outcome::kFinished;
}

std::optional<Time> MayGrowFrom(const SweepSpec& spec, const Attempt& attempt) {
  if (attempt.ranks.empty() || std::ssize(attempt.ranks) >= spec.gang.workers) return std::nullopt;
  return Time{attempt.assigned_at.us + static_cast<int64_t>(spec.gang.grow_after.value * 1e6)};
}

std::string WhyClosed(const Executor& executor) {
  if (executor.drain) return "drained";
  if (!executor.problem.empty()) return executor.problem;
  return executor.quarantine ? "quarantined: " + executor.quarantine->reason : "";
}

std::string CodeDigestOf(const SweepSpec& spec, const Trial& trial) {
  return trial.patch ? (*trial.patch)->code : CodeDigestOf(spec, trial.config);
}

const LogPolicy* FindLogPolicy(const FailurePolicy& policies, const Failure& failure) {
  if (failure.pattern.empty()) return nullptr;
  const auto policy = std::ranges::find(policies.on_log, failure.pattern, &LogPolicy::pattern);
  return policy == policies.on_log.end() ? nullptr : &*policy;  // an edit may have removed it
}

bool BlamesHost(const Failure& failure) {
  return failure.kind != FailureKind::kLease && failure.kind != FailureKind::kDisk &&
         !failure.lost_peer;
}

bool IsFirstFullDisk(const Trial& trial, const Failure& failure) {
  return failure.kind == FailureKind::kDisk && !trial.filled_disk;
}

bool CountsAsRestart(const SweepSpec& spec, const Trial& trial, const Failure& failure) {
  if (failure.kind == FailureKind::kLease || failure.kind == FailureKind::kHost ||
      failure.kind == FailureKind::kEnvironment || IsFirstFullDisk(trial, failure))
    return false;
  const LogPolicy* policy = FindLogPolicy(spec.failure, failure);
  return policy == nullptr || policy->action == LogAction::kFail ||
         trial.avoided.contains(failure.executor);
}

void EarlyFailures::Note(TrialNumber trial, const Failure& failure) {
  ++count;
  trials.insert(trial);
  executors.insert(failure.executor);
}

namespace {

std::set<std::string> StillThere(const State& state,
                                 const std::map<std::string, Incarnation>& executors) {
  std::set<std::string> names;
  for (const auto& [name, incarnation] : executors) {
    const auto executor = state.executors.find(name);
    if (executor != state.executors.end() && executor->second.incarnation == incarnation)
      names.insert(name);
  }
  return names;
}

}  // namespace

std::set<std::string> ExcludedFrom(const State& state, const Sweep& sweep) {
  return StillThere(state, sweep.excluded);
}

std::set<std::string> AvoidedBy(const State& state, const Trial& trial) {
  return StillThere(state, trial.avoided);
}

Seconds MinRuntimeOf(const Sweep& sweep) {
  constexpr double kReportGapMax = 1e9;  // a trial may report any finite time
  return Seconds(kLeaveBefore.value + std::exp2(std::ceil(std::log2(std::clamp(
                                          sweep.report_gap.value, 1.0, kReportGapMax)))));
}

namespace {

std::vector<const Trial*> TrialsOn(const State& state, const std::string& executor, bool wanted) {
  std::vector<const Trial*> trials;
  const auto found = state.executors.find(executor);
  if (found == state.executors.end()) return trials;
  for (const auto& [epoch, id] : found->second.attempts) {
    const Trial& trial = *state.Find(id);
    // A program whose output is parsed does not receive verdicts, so its other ranks would not
    // leave.
    const bool left = trial.live->SpansExecutors() && trial.live->RankZeroHasLeft() &&
                      !state.Find(id.sweep)->spec.program.report_pattern.empty();
    if ((ShouldRun(trial) && !left) == wanted) trials.push_back(&trial);
  }
  return trials;
}

}  // namespace

std::vector<const Trial*> TrialsToRunOn(const State& state, const std::string& executor) {
  return TrialsOn(state, executor, true);
}

std::vector<const Trial*> TrialsToEndOn(const State& state, const std::string& executor) {
  return TrialsOn(state, executor, false);
}

Step LastStep(const Sweep& sweep, const Trial& trial) {
  return trial.until.value > 0 ? trial.until : sweep.spec.max_step;
}

uint64_t SeedOf(const SweepSpec& spec, TrialNumber trial) {
  if (spec.trial_seed > 0) return spec.trial_seed;
  return RandomStream(spec.seed, trial, "trial/seed").Bits() >> 11;
}

}  // namespace attune

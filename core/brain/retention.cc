#include "core/brain/retention.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace attune {
namespace {

bool AmongLast(const CheckpointPolicy& policy, const Trial& trial, size_t index) {
  const size_t newer = trial.checkpoints.size() - 1 - index;
  return newer < static_cast<size_t>(std::max(policy.keep_last, 1));
}

// Of equal values the one saved first is better.
bool AmongBest(const Sweep& sweep, const Trial& trial, size_t index) {
  const auto& value = trial.checkpoints[index].value;
  if (!value) return false;
  int better = 0;
  for (size_t other = 0; other < trial.checkpoints.size(); ++other) {
    const auto& rival = trial.checkpoints[other].value;
    if (!rival || other == index) continue;
    if (sweep.spec.objective.Better(*rival, *value) || (*rival == *value && other < index))
      ++better;
  }
  return better < sweep.spec.checkpoint.keep_best;
}

CheckpointId IdOf(const Trial& trial, const KeptCheckpoint& checkpoint) {
  return {trial.id, checkpoint.attempt, checkpoint.ref.step};
}

// Beside the scheduler.
bool ReferredByOthers(const Sweep& sweep, const CheckpointId& id) {
  const auto& best = sweep.best;
  if (best && best->trial == id.trial.number && best->attempt == id.attempt &&
      best->step == id.step)
    return true;
  return std::ranges::any_of(sweep.clones,
                             [&](TrialNumber number) { return sweep.Find(number)->donor == id; });
}

// Beside the scheduler's.
Keep KeptByOthers(const Sweep& sweep, const Trial& trial, size_t index) {
  const KeptCheckpoint& checkpoint = trial.checkpoints[index];
  if (checkpoint.pinned || AmongLast(sweep.spec.checkpoint, trial, index) ||
      AmongBest(sweep, trial, index))
    return Keep::kForGood;
  const bool resumed = trial.live && trial.live->resume == checkpoint.ref;
  return resumed || ReferredByOthers(sweep, IdOf(trial, checkpoint)) ? Keep::kForNow : Keep::kNot;
}

}  // namespace

bool Referred(const Sweep& sweep, TrialNumber trial, const KeptCheckpoint& checkpoint) {
  const CheckpointId id{{sweep.id, trial}, checkpoint.attempt, checkpoint.ref.step};
  return sweep.retained.contains(id) || ReferredByOthers(sweep, id);
}

Keep KeptFor(const Sweep& sweep, const Trial& trial, size_t index) {
  // Whatever else keeps it: its trial is not to leave memory, where the scheduler's word finds it.
  if (sweep.retained.contains(IdOf(trial, trial.checkpoints[index]))) return Keep::kForNow;
  return KeptByOthers(sweep, trial, index);
}

bool OnlyRetained(const Sweep& sweep, const CheckpointId& checkpoint) {
  const Trial& trial = *sweep.Find(checkpoint.trial.number);
  const auto index = static_cast<size_t>(sweep.Find(checkpoint) - trial.checkpoints.data());
  return KeptByOthers(sweep, trial, index) == Keep::kNot;
}

const KeptCheckpoint* Surplus(const Sweep& sweep, const Trial& trial) {
  for (size_t i = 0; i < trial.checkpoints.size(); ++i) {
    if (KeptFor(sweep, trial, i) == Keep::kNot) return &trial.checkpoints[i];
  }
  return nullptr;
}

bool Settled(const Sweep& sweep, const Trial& trial) {
  if (!Ended(trial.state) || trial.live) return false;
  for (size_t i = 0; i < trial.checkpoints.size(); ++i) {
    if (KeptFor(sweep, trial, i) != Keep::kForGood) return false;
  }
  return true;
}

void Review(Sweep& sweep, TrialNumber number) {
  const Trial* trial = sweep.Find(number);
  if (trial == nullptr) return;
  if (Settled(sweep, *trial)) {
    sweep.trials.erase(number);
    sweep.surplus.erase(number);
  } else if (Surplus(sweep, *trial) != nullptr) {
    sweep.surplus.insert(number);
  } else {
    sweep.surplus.erase(number);
  }
}

void ReviewRetained(Sweep& sweep) {
  const std::set<CheckpointId>& retained = sweep.scheduler->Retained();
  if (retained == sweep.retained) return;
  std::vector<CheckpointId> changed;
  std::ranges::set_symmetric_difference(sweep.retained, retained, std::back_inserter(changed));
  sweep.retained = retained;
  for (const CheckpointId& checkpoint : changed) Review(sweep, checkpoint.trial.number);
}

}  // namespace attune

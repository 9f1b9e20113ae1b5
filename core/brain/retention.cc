#include "core/brain/retention.h"

#include <algorithm>

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

}  // namespace

bool Referred(const Sweep& sweep, TrialNumber trial, const KeptCheckpoint& checkpoint) {
  if (sweep.best && sweep.best->trial == trial && sweep.best->attempt == checkpoint.attempt &&
      sweep.best->step == checkpoint.ref.step)
    return true;
  return std::ranges::any_of(sweep.clones, [&](TrialNumber number) {
    const Trial& clone = *sweep.Find(number);
    return clone.donor == trial && clone.cloned->ref == checkpoint.ref;
  });
}

Keep KeptFor(const Sweep& sweep, const Trial& trial, size_t index) {
  const KeptCheckpoint& checkpoint = trial.checkpoints[index];
  if (checkpoint.pinned || AmongLast(sweep.spec.checkpoint, trial, index) ||
      AmongBest(sweep, trial, index))
    return Keep::kForGood;
  const bool resumed = trial.live && trial.live->resume == checkpoint.ref;
  return resumed || Referred(sweep, trial.id.number, checkpoint) ? Keep::kForNow : Keep::kNot;
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

}  // namespace attune

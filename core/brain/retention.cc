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

// How many of the trial's checkpoints are better than this one in everything.
int Dominators(const Sweep& sweep, const Trial& trial, size_t index) {
  const auto& values = trial.checkpoints[index].values;
  return static_cast<int>(
      std::ranges::count_if(trial.checkpoints, [&](const KeptCheckpoint& rival) {
        return !rival.values.empty() && Dominates(sweep.spec.objectives, rival.values, values);
      }));
}

// Those that the fewest others are better than; of these the best in the first objective, then the
// one saved first.
bool AmongBest(const Sweep& sweep, const Trial& trial, size_t index) {
  const auto& values = trial.checkpoints[index].values;
  if (values.empty()) return false;
  const int dominators = Dominators(sweep, trial, index);
  int ahead = 0;
  for (size_t other = 0; other < trial.checkpoints.size(); ++other) {
    const auto& rival = trial.checkpoints[other].values;
    if (rival.empty() || other == index) continue;
    const int its = Dominators(sweep, trial, other);
    if (its != dominators) {
      if (its < dominators) ++ahead;
    } else if (rival[0] == values[0] ? other < index
                                     : sweep.spec.objective().Better(rival[0], values[0])) {
      ++ahead;
    }
  }
  return ahead < sweep.spec.checkpoint.keep_best;
}

CheckpointId IdOf(const Trial& trial, const KeptCheckpoint& checkpoint) {
  return {trial.id, checkpoint.attempt, checkpoint.ref.step};
}

// Beside the scheduler.
bool ReferredByOthers(const Sweep& sweep, const CheckpointId& id) {
  const bool best = std::ranges::any_of(sweep.front, [&](const Best& report) {
    return report.trial == id.trial.number && report.attempt == id.attempt &&
           report.step == id.step;
  });
  if (best) return true;
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

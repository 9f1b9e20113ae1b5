#include "core/state/retention.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace attune {
namespace {

// Whether, and for how long, a checkpoint is kept.
enum class Keep {
  kNot,      // nothing needs it
  kForNow,   // something refers to it, perhaps not forever
  kForGood,  // the sweep's policy keeps it
};

// Which of the trial's checkpoints the policy keeps, as the newest or the best since the trial
// began from the start. A checkpoint whose report may still arrive is kept in addition, because
// until then the trial would resume from an earlier one. The fewer other checkpoints dominate a
// checkpoint, the better it is. Ties go to the better value of the first objective, then to the
// earlier checkpoint.
std::vector<bool> KeptByPolicy(const Sweep& sweep, const Trial& trial) {
  const auto& all = trial.checkpoints;
  const CheckpointPolicy& policy = sweep.spec.checkpoint;
  const bool has_ended = HasEnded(trial.state) && !trial.live;
  int newest = has_ended ? policy.keep_last : std::max(policy.keep_last, 1);
  std::vector<bool> kept(all.size());
  std::vector<size_t> rivals;
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].attempt <= trial.earlier_attempts) continue;
    const bool report_may_arrive = trial.live && trial.live->id.number == all[i].attempt;
    kept[i] = all[i].unreported ? report_may_arrive : newest-- > 0;
    if (!all[i].values.empty()) rivals.push_back(i);
  }
  // With one objective, the order by value gives the same result.
  std::vector<int> dominators(all.size());
  if (sweep.spec.objectives.size() > 1) {
    for (const size_t i : rivals) {
      dominators[i] = static_cast<int>(std::ranges::count_if(rivals, [&](size_t rival) {
        return Dominates(sweep.spec.objectives, all[rival].values, all[i].values);
      }));
    }
  }
  const Objective& objective = sweep.spec.objective();
  const size_t best = std::min(rivals.size(), static_cast<size_t>(policy.keep_best));
  std::ranges::partial_sort(rivals, rivals.begin() + static_cast<ptrdiff_t>(best),
                            [&](size_t a, size_t b) {
                              if (dominators[a] != dominators[b])
                                return dominators[a] < dominators[b];
                              if (all[a].values[0] != all[b].values[0])
                                return objective.Better(all[a].values[0], all[b].values[0]);
                              return a < b;
                            });
  for (size_t i = 0; i < best; ++i) kept[rivals[i]] = true;
  return kept;
}

CheckpointId IdOf(const Trial& trial, const KeptCheckpoint& checkpoint) {
  return {trial.id, checkpoint.attempt, checkpoint.ref.step};
}

// Whether the front or a clone refers to the checkpoint.
bool IsReferredTo(const Sweep& sweep, const CheckpointId& id) {
  if (IsBest(sweep, id)) return true;
  return std::ranges::any_of(sweep.clones,
                             [&](TrialNumber number) { return sweep.Find(number)->donor == id; });
}

// Whether an object store has a copy of the checkpoint and of no newer one. Until it has, an
// unfinished trial could lose its progress together with its host.
bool IsNewestStored(const Trial& trial, size_t index) {
  const auto is_stored = [&](const KeptCheckpoint& kept) {
    return !kept.stored.empty() && trial.CanResumeFrom(kept);
  };
  const auto& all = trial.checkpoints;
  return !HasEnded(trial.state) && is_stored(all[index]) &&
         std::none_of(all.begin() + static_cast<ptrdiff_t>(index) + 1, all.end(), is_stored);
}

// The result without the checkpoints that the scheduler retains.
Keep KeptByOthers(const Sweep& sweep, const Trial& trial, size_t index, bool by_policy) {
  const KeptCheckpoint& checkpoint = trial.checkpoints[index];
  // Only the state knows that a checkpoint is unreported, so its trial must not leave the state.
  if (by_policy && !checkpoint.unreported) return Keep::kForGood;
  const bool resumed = trial.live && trial.live->resume == checkpoint.ref;
  const bool kept = by_policy || checkpoint.pinned || resumed || IsNewestStored(trial, index) ||
                    IsReferredTo(sweep, IdOf(trial, checkpoint));
  return kept ? Keep::kForNow : Keep::kNot;
}

Keep KeptFor(const Sweep& sweep, const Trial& trial, size_t index, bool by_policy) {
  // kForNow in any case: the trial must stay in the state, so that the scheduler can refer to it.
  if (sweep.retained.contains(IdOf(trial, trial.checkpoints[index]))) return Keep::kForNow;
  return KeptByOthers(sweep, trial, index, by_policy);
}

}  // namespace

bool IsBest(const Sweep& sweep, const CheckpointId& id) {
  return std::ranges::any_of(sweep.front, [&](const Best& report) {
    return report.trial == id.trial.number && report.attempt == id.attempt &&
           report.step == id.step;
  });
}

std::string NeededBy(const Sweep& sweep, const Trial* live, TrialNumber trial,
                     const KeptCheckpoint& checkpoint) {
  const CheckpointId id{{sweep.id, trial}, checkpoint.attempt, checkpoint.ref.step};
  if (checkpoint.pinned)
    return "it is pinned; unpin it with `attune checkpoint unpin " + ToString(id) + "`";
  if (IsBest(sweep, id)) return "it has the sweep's best result";
  for (const TrialNumber clone : sweep.clones) {
    if (sweep.Find(clone)->donor == id)
      return "trial " + std::to_string(clone.value) + " continues from it";
  }
  if (sweep.retained.contains(id)) return "the scheduler may let another trial resume from it";
  if (live == nullptr) return "";
  if (live->live && live->live->resume == checkpoint.ref)
    return "attempt " + std::to_string(live->live->id.number) + " has resumed from it";
  if (!HasEnded(live->state) && live->NewestCheckpoint() != nullptr &&
      live->NewestCheckpoint()->ref == checkpoint.ref)
    return "its trial would resume from it; kill the trial first";
  return "";
}

const KeptCheckpoint* FindKept(const Sweep& sweep, const CheckpointId& checkpoint) {
  if (const KeptCheckpoint* kept = sweep.Find(checkpoint)) return kept;
  for (const TrialNumber number : sweep.clones) {
    const Trial& clone = *sweep.Find(number);
    if (clone.donor == checkpoint) return &*clone.cloned;
  }
  return nullptr;
}

bool IsOnlyRetained(const Sweep& sweep, const CheckpointId& checkpoint) {
  const Trial& trial = *sweep.Find(checkpoint.trial.number);
  const auto index = static_cast<size_t>(sweep.Find(checkpoint) - trial.checkpoints.data());
  return KeptByOthers(sweep, trial, index, KeptByPolicy(sweep, trial)[index]) == Keep::kNot;
}

const KeptCheckpoint* FindSurplus(const Sweep& sweep, const Trial& trial) {
  if (trial.checkpoints.empty()) return nullptr;
  const std::vector<bool> by_policy = KeptByPolicy(sweep, trial);
  for (size_t i = 0; i < trial.checkpoints.size(); ++i) {
    if (KeptFor(sweep, trial, i, by_policy[i]) == Keep::kNot) return &trial.checkpoints[i];
  }
  return nullptr;
}

bool IsSettled(const Sweep& sweep, const Trial& trial) {
  if (!HasEnded(trial.state) || trial.live) return false;
  const std::vector<bool> by_policy = KeptByPolicy(sweep, trial);
  for (size_t i = 0; i < trial.checkpoints.size(); ++i) {
    if (KeptFor(sweep, trial, i, by_policy[i]) != Keep::kForGood) return false;
  }
  return true;
}

void SetPinned(Sweep& sweep, const CheckpointId& checkpoint, bool pinned) {
  Trial* trial = sweep.Find(checkpoint.trial.number);
  if (trial == nullptr) return;  // a trial that has left the state keeps its checkpoints
  for (KeptCheckpoint& kept : trial->checkpoints) {
    if (IdOf(*trial, kept) == checkpoint) kept.pinned = pinned;
  }
  Review(sweep, trial->id.number);
}

void SetStored(Sweep& sweep, const CheckpointId& checkpoint, const std::string& address,
               bool only) {
  const auto note = [&](KeptCheckpoint& kept) {
    kept.stored = address;
    if (only) kept.folder = kNoFolder;
  };
  Trial* trial = sweep.Find(checkpoint.trial.number);
  KeptCheckpoint* kept =
      trial == nullptr ? nullptr : trial->Find(checkpoint.attempt, checkpoint.step);
  if (kept != nullptr) {
    note(*kept);
    Review(sweep, trial->id.number);
  }
  for (const TrialNumber number : sweep.clones) {
    Trial& clone = *sweep.Find(number);
    if (clone.donor == checkpoint) note(*clone.cloned);
  }
}

void Remove(Sweep& sweep, const CheckpointId& checkpoint) {
  Trial* trial = sweep.Find(checkpoint.trial.number);
  if (trial == nullptr) return;
  std::erase_if(trial->checkpoints,
                [&](const KeptCheckpoint& kept) { return IdOf(*trial, kept) == checkpoint; });
  Review(sweep, trial->id.number);
}

void Review(Sweep& sweep, TrialNumber number) {
  const Trial* trial = sweep.Find(number);
  if (trial == nullptr) return;
  if (IsSettled(sweep, *trial)) {
    sweep.trials.erase(number);
    sweep.surplus.erase(number);
  } else if (FindSurplus(sweep, *trial) != nullptr) {
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

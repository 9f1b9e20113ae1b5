#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// No checkpoint is dropped while something refers to it, none is left that nothing refers to; every
// one that is dropped is deleted, and no other.
class Checkpoints final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) Dropped(*dropped);
    if (const auto* removed = std::get_if<CheckpointRemoved>(&event.fact)) Removed(*removed);
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) Resumed(*assigned);
    if (const auto* ended = std::get_if<SweepEnded>(&event.fact)) Over(*books_.Find(ended->sweep));
  }

  void AtEnd() override {
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.deleted) {
        Gone(sweep);
        continue;
      }
      Over(sweep);
      for (const auto& [number, trial] : sweep.trials) {
        for (const CheckpointBook& checkpoint : trial.checkpoints) Settled(checkpoint);
      }
    }
  }

 private:
  // Those that the trial goes on from, and the sweep file speaks of, as they were saved.
  static std::vector<const CheckpointBook*> OfItsPresentLife(const TrialBook& trial) {
    std::vector<const CheckpointBook*> present;
    for (const CheckpointBook& book : trial.checkpoints) {
      if (!book.dropped && !book.unreported && book.attempt > trial.earlier_attempts)
        present.push_back(&book);
    }
    return present;
  }

  void Dropped(const CheckpointDropped& fact) {
    const CheckpointBook* book = books_.Find(fact.checkpoint);
    if (book == nullptr) return Find(fact.path + " is dropped, and was never saved");
    if (book->dropped) Find(fact.path + " is dropped twice");
    if (book->ref.path != fact.path || book->executor != fact.executor)
      Find(fact.path + " is dropped on " + fact.executor + ", and lies elsewhere");
    if (!reality_.HasFile(fact.path)) return;  // a lost part of the log had dropped it
    if (book->pinned) Find(fact.path + " is dropped, and a person has pinned it");

    const SweepBook& sweep = *books_.Find(fact.checkpoint.trial.sweep);
    const TrialBook& trial = *books_.Find(fact.checkpoint.trial);
    const auto present = OfItsPresentLife(trial);
    if (!present.empty() && present.back() == book && !Ended(trial.state))
      Find(fact.path + " is dropped, and its trial would go on from it");
    if (sweep.OnFront(fact.checkpoint))
      Find(fact.path + " is dropped, and is one of the sweep's best");
    for (const auto& [number, other] : sweep.trials) {
      if (other.cloned && other.cloned->ref == book->ref)
        Find(fact.path + " is dropped, and trial " + ToString(other.id) + " is its clone");
      if (other.live && !Ended(other.state) && other.live->resume == book->ref &&
          !other.live->saved)
        Find(fact.path + " is dropped, and " + ToString(other.live->id) + " goes on from it");
    }
  }

  void Removed(const CheckpointRemoved& fact) {
    const CheckpointBook* book = books_.Find(fact.checkpoint);
    if (book == nullptr || !book->dropped || book->removed)
      return Find("a checkpoint of " + ToString(fact.checkpoint.trial) +
                  " is removed that was not to be");
    if (reality_.HasFile(book->ref.path)) Find(book->ref.path + " is said to be gone, and is not");
  }

  void Resumed(const AttemptAssigned& fact) {
    if (!fact.resume) return;
    for (const auto& [number, trial] : books_.Find(fact.attempt.trial.sweep)->trials) {
      for (const CheckpointBook& book : trial.checkpoints) {
        if (book.ref == *fact.resume && book.dropped)
          Find(ToString(fact.attempt) + " is to go on from " + book.ref.path +
               ", which was dropped");
        if (book.ref == *fact.resume && book.unreported)
          Find(ToString(fact.attempt) + " is to go on from " + book.ref.path +
               ", whose report has not come");
      }
    }
  }

  void Settled(const CheckpointBook& checkpoint) {
    if (books_.executors.at(checkpoint.executor).lost) return;  // it holds what it holds
    if (checkpoint.dropped && !checkpoint.removed)
      Find(checkpoint.ref.path + " was dropped and is never deleted");
    if (checkpoint.dropped == reality_.HasFile(checkpoint.ref.path) &&
        !reality_.IsLost(checkpoint.ref.path))
      Find(checkpoint.ref.path +
           (checkpoint.dropped ? " was dropped, and is there" : " is kept, and is gone"));
  }

  void Gone(const SweepBook& sweep) {
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        if (!books_.executors.at(checkpoint.executor).lost && reality_.HasFile(checkpoint.ref.path))
          Find(checkpoint.ref.path + " is there, and its sweep was deleted");
      }
    }
  }

  // Nothing of the sweep runs or waits: what is left is of its best results, pinned, or what the
  // sweep file keeps.
  void Over(const SweepBook& sweep) {
    for (const auto& [number, trial] : sweep.trials) {
      const auto present = OfItsPresentLife(trial);
      int by_policy = 0;
      for (const CheckpointBook& book : trial.checkpoints) {
        if (book.dropped || book.pinned || sweep.OnFront({trial.id, book.attempt, book.ref.step}))
          continue;
        ++by_policy;
        if (!IsNewest(sweep, present, book) && !IsBest(sweep, present, book))
          Find(book.ref.path + " is kept, and nothing refers to it");
      }
      const CheckpointPolicy& policy = sweep.spec.checkpoint;
      if (by_policy > policy.keep_last + policy.keep_best)
        Find("trial " + ToString(trial.id) + " keeps " + std::to_string(by_policy) +
             " checkpoints");
    }
  }

  static bool IsNewest(const SweepBook& sweep, const std::vector<const CheckpointBook*>& present,
                       const CheckpointBook& book) {
    const auto place = std::ranges::find(present, &book);
    return place != present.end() && present.end() - place <= sweep.spec.checkpoint.keep_last;
  }

  // Of equals each may be it.
  static bool IsBest(const SweepBook& sweep, const std::vector<const CheckpointBook*>& present,
                     const CheckpointBook& book) {
    const auto better = [&](const CheckpointBook* other) {
      return !other->values.empty() && sweep.AsGood(other->values, book.values) &&
             !sweep.AsGood(book.values, other->values);
    };
    return std::ranges::find(present, &book) != present.end() && !book.values.empty() &&
           std::ranges::count_if(present, better) < sweep.spec.checkpoint.keep_best;
  }
};

}  // namespace

std::unique_ptr<Checker> CheckCheckpoints(const Evidence& evidence) {
  return std::make_unique<Checkpoints>(evidence);
}

}  // namespace attune::sim

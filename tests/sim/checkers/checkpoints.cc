#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// No checkpoint is dropped while something refers to it; every one that is dropped is deleted, and
// no other.
class Checkpoints final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) Dropped(*dropped);
    if (const auto* removed = std::get_if<CheckpointRemoved>(&event.fact)) Removed(*removed);
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) Resumed(*assigned);
  }

  void AtEnd() override {
    for (const auto& [id, sweep] : books_.sweeps) {
      for (const auto& [number, trial] : sweep.trials) {
        for (const CheckpointBook& checkpoint : trial.checkpoints) Settled(checkpoint);
        Retained(sweep, trial);
      }
    }
  }

 private:
  static bool Newest(const TrialBook& trial, const CheckpointBook& checkpoint) {
    const auto newest =
        std::ranges::find_if(trial.checkpoints.rbegin(), trial.checkpoints.rend(),
                             [](const auto& book) { return !book.dropped && !book.unreported; });
    return newest != trial.checkpoints.rend() && &*newest == &checkpoint;
  }

  void Dropped(const CheckpointDropped& fact) {
    const CheckpointBook* book = books_.Find(fact.checkpoint);
    if (book == nullptr) return Find(fact.path + " is dropped, and was never saved");
    if (book->dropped) Find(fact.path + " is dropped twice");
    if (book->ref.path != fact.path || book->executor != fact.executor)
      Find(fact.path + " is dropped on " + fact.executor + ", and lies elsewhere");
    if (book->pinned) Find(fact.path + " is dropped, and a person has pinned it");

    const SweepBook& sweep = *books_.Find(fact.checkpoint.trial.sweep);
    const TrialBook& trial = *books_.Find(fact.checkpoint.trial);
    const bool anew = fact.reason == "its trial begins anew";  // as a person has asked
    if (!anew && Newest(trial, *book) && !Ended(trial.state))
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
    if (checkpoint.dropped == reality_.HasFile(checkpoint.ref.path))
      Find(checkpoint.ref.path +
           (checkpoint.dropped ? " was dropped, and is there" : " is kept, and is gone"));
  }

  void Retained(const SweepBook& sweep, const TrialBook& trial) {
    // What a person has pinned may stay when it is let go, and what was referred to when its trial
    // began anew.
    const auto kept = std::ranges::count_if(trial.checkpoints, [](const CheckpointBook& book) {
      return !book.dropped && !book.may_stay;
    });
    const CheckpointPolicy& policy = sweep.spec.checkpoint;
    const auto best = std::ranges::count_if(
        sweep.front, [&](const BestBook& report) { return report.at.trial == trial.id; });
    if (kept > policy.keep_last + policy.keep_best + best)
      Find("trial " + ToString(trial.id) + " keeps " + std::to_string(kept) + " checkpoints");
  }
};

}  // namespace

std::unique_ptr<Checker> CheckCheckpoints(const Evidence& evidence) {
  return std::make_unique<Checkpoints>(evidence);
}

}  // namespace attune::sim

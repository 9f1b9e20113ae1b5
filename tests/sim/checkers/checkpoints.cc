#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A checkpoint is kept while something refers to it and dropped otherwise. Exactly the dropped
// checkpoints are deleted.
class Checkpoints final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) CheckDropped(*dropped);
    if (const auto* removed = std::get_if<CheckpointRemoved>(&event.fact)) CheckRemoved(*removed);
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) CheckResume(*assigned);
    if (const auto* ended = std::get_if<SweepEnded>(&event.fact))
      CheckEnded(*books_.Find(ended->sweep));
  }

  void AtEnd() override {
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.deleted) {
        CheckDeleted(sweep);
        continue;
      }
      CheckEnded(sweep);
      for (const auto& [number, trial] : sweep.trials) {
        for (const CheckpointBook& checkpoint : trial.checkpoints) CheckFile(checkpoint);
      }
    }
  }

 private:
  // The checkpoints since the trial's last restart from scratch, oldest first. The trial resumes
  // from the newest one, and the checkpoint policy of the sweep file applies to them.
  static std::vector<const CheckpointBook*> CurrentCheckpoints(const TrialBook& trial) {
    std::vector<const CheckpointBook*> current;
    for (const CheckpointBook& book : trial.checkpoints) {
      if (!book.dropped && !book.unreported && book.attempt > trial.earlier_attempts)
        current.push_back(&book);
    }
    return current;
  }

  void CheckDropped(const CheckpointDropped& fact) {
    const CheckpointBook* book = books_.Find(fact.checkpoint);
    if (book == nullptr) return Report(fact.path + " is dropped but was never saved");
    if (book->dropped) Report(fact.path + " is dropped twice");
    if (book->ref.path != fact.path || book->executor != fact.executor)
      Report(fact.path + " is dropped on " + fact.executor + " but is stored elsewhere");
    if (!reality_.HasFile(fact.path)) return;  // the lost part of the log had dropped it
    if (book->pinned) Report(fact.path + " is dropped although a user has pinned it");

    const SweepBook& sweep = *books_.Find(fact.checkpoint.trial.sweep);
    const TrialBook& trial = *books_.Find(fact.checkpoint.trial);
    const auto current = CurrentCheckpoints(trial);
    if (!current.empty() && current.back() == book && !HasEnded(trial.state))
      Report(fact.path + " is dropped although its trial would resume from it");
    if (sweep.IsOnFront(fact.checkpoint))
      Report(fact.path + " is dropped although it is one of the sweep's best");
    for (const auto& [number, other] : sweep.trials) {
      if (other.cloned && other.cloned->ref == book->ref)
        Report(fact.path + " is dropped although trial " + ToString(other.id) +
               " still needs it as its clone");
      if (other.live && !HasEnded(other.state) && other.live->resume == book->ref &&
          !other.live->saved)
        Report(fact.path + " is dropped although " + ToString(other.live->id) + " resumes from it");
    }
  }

  void CheckRemoved(const CheckpointRemoved& fact) {
    const CheckpointBook* book = books_.Find(fact.checkpoint);
    if (book == nullptr || !book->dropped || book->removed)
      return Report("a checkpoint of " + ToString(fact.checkpoint.trial) +
                    " is removed without an order");
    if (reality_.HasFile(book->ref.path))
      Report(book->ref.path + " was reported as removed but exists");
  }

  void CheckResume(const AttemptAssigned& fact) {
    if (!fact.resume) return;
    for (const auto& [number, trial] : books_.Find(fact.attempt.trial.sweep)->trials) {
      for (const CheckpointBook& book : trial.checkpoints) {
        if (book.ref == *fact.resume && book.dropped)
          Report(ToString(fact.attempt) + " must resume from " + book.ref.path +
                 ", which was dropped");
        if (book.ref == *fact.resume && book.unreported)
          Report(ToString(fact.attempt) + " must resume from " + book.ref.path +
                 ", whose report has not arrived");
        if (book.ref == *fact.resume && !book.stored && IsOnLostFolder(book))
          Report(ToString(fact.attempt) + " must resume from " + book.ref.path +
                 ", which only lost executors have");
      }
    }
  }

  // Whether all executors that can read the folder of the checkpoint are lost.
  bool IsOnLostFolder(const CheckpointBook& checkpoint) const {
    const std::string& folder = books_.executors.at(checkpoint.executor).folder;
    return !folder.empty() && std::ranges::all_of(books_.executors, [&](const auto& entry) {
      return entry.second.lost || entry.second.folder != folder;
    });
  }

  void CheckFile(const CheckpointBook& checkpoint) {
    if (books_.executors.at(checkpoint.executor).lost)
      return;  // a lost executor cannot delete its files
    if (checkpoint.only) return;
    if (checkpoint.dropped && !checkpoint.removed)
      Report(checkpoint.ref.path + " was dropped but never deleted");
    if (checkpoint.dropped == reality_.HasFile(checkpoint.ref.path) &&
        !reality_.IsLost(checkpoint.ref.path))
      Report(checkpoint.ref.path +
             (checkpoint.dropped ? " was dropped but exists" : " is kept but missing"));
  }

  void CheckDeleted(const SweepBook& sweep) {
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        if (!books_.executors.at(checkpoint.executor).lost && reality_.HasFile(checkpoint.ref.path))
          Report(checkpoint.ref.path + " exists although its sweep was deleted");
      }
    }
  }

  // After the end of a sweep, each kept checkpoint belongs to a best result, is pinned, or is kept
  // by the policy of the sweep file.
  void CheckEnded(const SweepBook& sweep) {
    for (const auto& [number, trial] : sweep.trials) {
      const auto current = CurrentCheckpoints(trial);
      int by_policy = 0;
      for (const CheckpointBook& book : trial.checkpoints) {
        if (book.dropped || book.pinned || sweep.IsOnFront({trial.id, book.attempt, book.ref.step}))
          continue;
        ++by_policy;
        if (!IsNewest(sweep, current, book) && !IsBest(sweep, current, book))
          Report(book.ref.path + " is kept although nothing refers to it");
      }
      const CheckpointPolicy& policy = sweep.spec.checkpoint;
      if (by_policy > policy.keep_last + policy.keep_best)
        Report("trial " + ToString(trial.id) + " keeps " + std::to_string(by_policy) +
               " checkpoints");
    }
  }

  static bool IsNewest(const SweepBook& sweep, const std::vector<const CheckpointBook*>& current,
                       const CheckpointBook& book) {
    const auto position = std::ranges::find(current, &book);
    return position != current.end() && current.end() - position <= sweep.spec.checkpoint.keep_last;
  }

  // Among equal checkpoints, the server may keep any.
  static bool IsBest(const SweepBook& sweep, const std::vector<const CheckpointBook*>& current,
                     const CheckpointBook& book) {
    const auto better = [&](const CheckpointBook* other) {
      return !other->values.empty() && sweep.IsAsGood(other->values, book.values) &&
             !sweep.IsAsGood(book.values, other->values);
    };
    return std::ranges::find(current, &book) != current.end() && !book.values.empty() &&
           std::ranges::count_if(current, better) < sweep.spec.checkpoint.keep_best;
  }
};

}  // namespace

std::unique_ptr<Checker> CheckCheckpoints(const Evidence& evidence) {
  return std::make_unique<Checkpoints>(evidence);
}

}  // namespace attune::sim

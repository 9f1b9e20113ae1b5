#include <set>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Sweeps and trials change their states as docs/architecture.md describes, each request creates one
// object, and everything ends.
class Lifecycle final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (event.seq.value != books_.last_seq.value + 1) Report("the log has a gap");
    if (event.time < books_.last_time) Report("time runs backwards in the log");
    now_ = event.time;
    if (const auto sweep = SweepOf(event.fact);
        sweep && IsDeleted(*sweep) && !std::holds_alternative<SweepRemoved>(event.fact))
      Report("sweep " + ToString(*sweep) + " was deleted but has a later event");
    std::visit([this](const auto& fact) { Check(fact); }, event.fact);
  }

  void AtEnd() override {
    for (const auto& [id, sweep] : books_.sweeps) {
      if (!HasEnded(sweep.state)) Report("sweep " + ToString(id) + " has not ended");
      for (const auto& [number, trial] : sweep.trials) {
        if (!HasEnded(trial.state) || trial.live)
          Report("trial " + ToString(trial.id) + " has not ended");
      }
    }
  }

 private:
  template <class Other>
  void Check(const Other&) {}

  // ---- sweeps ------------------------------------------------------------------------------

  void Check(const SweepCreated& fact) {
    if (books_.sweeps.contains(fact.sweep))
      Report("sweep " + ToString(fact.sweep) + " exists already");
    if (!fact.idempotency_key.empty() && !keys_.insert({SweepId{}, fact.idempotency_key}).second)
      Report("two sweeps for one request: " + fact.idempotency_key);
  }
  void Check(const SweepPaused& fact) {
    ExpectState(fact.sweep, SweepState::kRunning, "is paused");
  }
  void Check(const SweepResumed& fact) {
    ExpectState(fact.sweep, SweepState::kPaused, "is resumed");
  }
  void Check(const SweepEdited& fact) { FindOpenSweep(fact.sweep, "is edited"); }
  void Check(const SweepReopened& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !HasEnded(sweep->state))
      Report("sweep " + ToString(fact.sweep) + " is reopened but has not ended");
    if (sweep != nullptr && sweep->deletion_scheduled)
      Report("sweep " + ToString(fact.sweep) + " is reopened but will be deleted");
  }
  void Check(const SweepStopping& fact) { FindOpenSweep(fact.sweep, "is stopped"); }
  void Check(const SweepEnded& fact) {
    const SweepBook* sweep = FindOpenSweep(fact.sweep, "ends");
    if (sweep == nullptr) return;
    if (!HasEnded(fact.state))
      Report("sweep " + ToString(fact.sweep) + " ends in a state that is not final");
    if (sweep->stopping && *sweep->stopping != fact.state)
      Report("sweep " + ToString(fact.sweep) + " ends in another state than it was stopped with");
    for (const auto& [number, trial] : sweep->trials) {
      if (!HasEnded(trial.state) || trial.live)
        Report("sweep " + ToString(fact.sweep) + " ends before trial " + ToString(trial.id));
    }
  }
  void Check(const SweepAnnotated& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || sweep->deletion_scheduled)
      Report("sweep " + ToString(fact.sweep) + " is annotated but will be deleted or is unknown");
  }
  void Check(const SweepDeletionScheduled& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !HasEnded(sweep->state))
      Report("sweep " + ToString(fact.sweep) + " will be deleted but has not ended");
    else if (sweep->deletion_scheduled)
      Report("the deletion of sweep " + ToString(fact.sweep) + " is scheduled twice");
    if (fact.at <= now_)
      Report("the deletion of sweep " + ToString(fact.sweep) + " is scheduled for the past");
  }
  void Check(const SweepUndeleted& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !sweep->deletion_scheduled)
      Report("sweep " + ToString(fact.sweep) + " stays but no deletion was scheduled");
  }
  void Check(const SweepDeleted& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !HasEnded(sweep->state))
      Report("sweep " + ToString(fact.sweep) + " is deleted but has not ended");
  }
  void Check(const SweepRemoved& fact) {
    if (!IsDeleted(fact.sweep))
      Report("sweep " + ToString(fact.sweep) + " is removed but was not deleted");
  }
  bool IsDeleted(SweepId id) const {
    const SweepBook* sweep = books_.Find(id);
    return sweep != nullptr && sweep->deleted;
  }
  void Check(const SearchExhausted& fact) {
    const SweepBook* sweep = FindOpenSweep(fact.sweep, "is exhausted");
    if (sweep != nullptr && sweep->exhausted)
      Report("sweep " + ToString(fact.sweep) + " is exhausted twice");
  }

  void Check(const ProposalBegun& fact) {
    const SweepBook* sweep = FindOpenSweep(fact.sweep, "thinks");
    if (sweep == nullptr) return;
    if (sweep->thinks) Report("sweep " + ToString(fact.sweep) + " thinks of two proposals at once");
    if (sweep->stopping) Report("sweep " + ToString(fact.sweep) + " thinks while it is stopping");
  }
  void Check(const SearchWaits& fact) { FindOpenSweep(fact.sweep, "waits"); }

  // ---- trials ------------------------------------------------------------------------------

  void Check(const TrialCreated& fact) {
    const SweepBook* sweep = FindOpenSweep(fact.trial.sweep, "has a new trial");
    if (sweep == nullptr) return;
    if (static_cast<int>(fact.trial.number.value) != sweep->CreatedCount())
      Report("trial " + ToString(fact.trial) + " has a wrong number");
    if (sweep->stopping)
      Report("trial " + ToString(fact.trial) + " is created in a stopping sweep");
    if (!fact.idempotency_key.empty() &&
        !keys_.insert({fact.trial.sweep, fact.idempotency_key}).second)
      Report("two trials for one request: " + fact.idempotency_key);
    if (const auto valid = sweep->spec.space.Resolve(fact.config); !valid.ok())
      Report("trial " + ToString(fact.trial) + ": " + valid.error().message);
  }
  void Check(const TrialReopened& fact) {
    const TrialBook* trial = books_.Find(fact.record.id);
    if (trial == nullptr || !HasEnded(trial->state) || trial->live)
      return Report("trial " + ToString(fact.record.id) + " is reopened but has not ended");
    if (fact.record.attempts != trial->attempts || !(fact.record.config == trial->config))
      Report("trial " + ToString(fact.record.id) + " is reopened with a different record");
    FindOpenSweep(fact.record.id.sweep, "has a trial reopened");
  }
  void Check(const AttemptAssigned& fact) {
    const SweepBook* sweep = FindOpenSweep(fact.attempt.trial.sweep, "starts a gang");
    const TrialBook* trial = FindOpenTrial(fact.attempt.trial, "is assigned");
    if (sweep == nullptr || trial == nullptr) return;
    if (trial->state == TrialState::kRunning)
      Report("trial " + ToString(trial->id) + " is assigned but already runs");
    if (trial->state == TrialState::kPaused)
      Report("trial " + ToString(trial->id) + " is assigned but was not promoted");
    if (sweep->state == SweepState::kPaused)
      Report(ToString(fact.attempt) + " starts although its sweep is paused");
    if (sweep->stopping && !trial->requested)
      Report(ToString(fact.attempt) + " starts although its sweep is stopping");
    if (trial->not_before > now_)
      Report(ToString(fact.attempt) + " starts before its backoff has ended");
  }
  void Check(const TrialAnnotated& fact) {
    const SweepBook* sweep = books_.Find(fact.trial.sweep);
    if (books_.Find(fact.trial) == nullptr || sweep->deletion_scheduled)
      Report("trial " + ToString(fact.trial) + " is annotated but will be deleted or is unknown");
  }
  void Check(const TrialReported& fact) {
    const TrialBook* trial = FindOpenTrial(fact.attempt.trial, "reports");
    if (trial == nullptr || !trial->live || trial->live->left)
      return Report(ToString(fact.attempt) + " reports after it has left");
    if (fact.report.step <= trial->last_step)
      Report(ToString(fact.attempt) + " reports step " + std::to_string(fact.report.step.value) +
             " after step " + std::to_string(trial->last_step.value));
  }
  void Check(const TrialDecided& fact) {
    const TrialBook* trial = FindOpenTrial(fact.attempt.trial, "is judged");
    if (trial != nullptr && trial->state != TrialState::kRunning)
      Report("trial " + ToString(trial->id) + " is judged but does not run");
  }
  void Check(const TrialPromoted& fact) {
    const TrialBook* trial = FindOpenTrial(fact.trial, "is promoted");
    if (trial == nullptr) return;
    if (trial->state != TrialState::kPaused || trial->live)
      Report("trial " + ToString(fact.trial) + " is promoted but is not paused");
    if (fact.reason.rule.empty())
      Report("trial " + ToString(fact.trial) + " is promoted without a reason");
    if (!fact.donor) return;
    const CheckpointBook* donor = books_.Find(*fact.donor);
    if (donor == nullptr || donor->dropped)
      Report("trial " + ToString(fact.trial) + " is promoted from a checkpoint that is gone");
  }
  void Check(const TrialYielding& fact) { FindOpenTrial(fact.trial, "is told to yield"); }
  void Check(const TrialRequeued& fact) {
    const TrialBook* trial = FindOpenTrial(fact.trial, "is requeued");
    if (trial == nullptr) return;
    // A trial that was paused may have to wait until its gang has left.
    if (trial->live && trial->state != TrialState::kPaused)
      Report("trial " + ToString(fact.trial) + " is requeued but still runs");
    if (trial->state == TrialState::kPending)
      Report("trial " + ToString(fact.trial) + " is requeued twice");
  }
  void Check(const TrialEnded& fact) {
    FindOpenTrial(fact.trial, "ends");
    if (!HasEnded(fact.state))
      Report("trial " + ToString(fact.trial) + " ends in a state that is not final");
  }

  void ExpectState(SweepId id, SweepState state, const std::string& what) {
    const SweepBook* sweep = books_.Find(id);
    if (sweep == nullptr || sweep->state != state)
      Report("sweep " + ToString(id) + " " + what + " but was not " + std::string(Name(state)));
  }
  const SweepBook* FindOpenSweep(SweepId id, const std::string& what) {
    const SweepBook* sweep = books_.Find(id);
    if (sweep != nullptr && !HasEnded(sweep->state)) return sweep;
    Report("sweep " + ToString(id) + " " + what + " but does not exist or has ended");
    return nullptr;
  }
  const TrialBook* FindOpenTrial(const TrialId& id, const std::string& what) {
    const TrialBook* trial = books_.Find(id);
    if (trial != nullptr && !HasEnded(trial->state)) return trial;
    Report("trial " + ToString(id) + " " + what + " but does not exist or has ended");
    return nullptr;
  }

  Time now_;
  std::set<std::pair<SweepId, std::string>> keys_;  // sweeps have sweep id 0
};

}  // namespace

std::unique_ptr<Checker> CheckLifecycle(const Evidence& evidence) {
  return std::make_unique<Lifecycle>(evidence);
}

}  // namespace attune::sim

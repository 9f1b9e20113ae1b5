#include <set>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Sweeps and trials go through their states as docs/architecture.md says, nothing is made twice for
// one request, and everything ends.
class Lifecycle final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (event.seq.value != books_.last_seq.value + 1) Find("the log has a gap");
    if (event.time < books_.last_time) Find("time goes back in the log");
    now_ = event.time;
    if (const auto sweep = SweepOf(event.fact);
        sweep && IsDeleted(*sweep) && !std::holds_alternative<SweepRemoved>(event.fact))
      Find("sweep " + ToString(*sweep) + " was deleted, and more is told of it");
    std::visit([this](const auto& fact) { On(fact); }, event.fact);
  }

  void AtEnd() override {
    for (const auto& [id, sweep] : books_.sweeps) {
      if (!Ended(sweep.state)) Find("sweep " + ToString(id) + " has not ended");
      for (const auto& [number, trial] : sweep.trials) {
        if (!Ended(trial.state) || trial.live)
          Find("trial " + ToString(trial.id) + " has not ended");
      }
    }
  }

 private:
  template <class Other>
  void On(const Other&) {}

  // ---- sweeps ------------------------------------------------------------------------------

  void On(const SweepCreated& fact) {
    if (books_.sweeps.contains(fact.sweep)) Find("sweep " + ToString(fact.sweep) + " is there");
    if (!fact.idempotency_key.empty() && !keys_.insert({SweepId{}, fact.idempotency_key}).second)
      Find("two sweeps for the request " + fact.idempotency_key);
  }
  void On(const SweepPaused& fact) { Expect(fact.sweep, SweepState::kRunning, "is paused"); }
  void On(const SweepResumed& fact) { Expect(fact.sweep, SweepState::kPaused, "is resumed"); }
  void On(const SweepEdited& fact) { Open(fact.sweep, "is edited"); }
  void On(const SweepReopened& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !Ended(sweep->state))
      Find("sweep " + ToString(fact.sweep) + " is reopened, and has not ended");
  }
  void On(const SweepStopping& fact) { Open(fact.sweep, "is stopped"); }
  void On(const SweepEnded& fact) {
    const SweepBook* sweep = Open(fact.sweep, "ends");
    if (sweep == nullptr) return;
    if (!Ended(fact.state))
      Find("sweep " + ToString(fact.sweep) + " ends in a state of the living");
    if (sweep->stopping && *sweep->stopping != fact.state)
      Find("sweep " + ToString(fact.sweep) + " ends otherwise than it was stopped");
    for (const auto& [number, trial] : sweep->trials) {
      if (!Ended(trial.state) || trial.live)
        Find("sweep " + ToString(fact.sweep) + " ends before trial " + ToString(trial.id));
    }
  }
  void On(const SweepDeleted& fact) {
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (sweep == nullptr || !Ended(sweep->state))
      Find("sweep " + ToString(fact.sweep) + " is deleted, and has not ended");
  }
  void On(const SweepRemoved& fact) {
    if (!IsDeleted(fact.sweep))
      Find("sweep " + ToString(fact.sweep) + " is removed, and was not to be");
  }
  bool IsDeleted(SweepId id) const {
    const SweepBook* sweep = books_.Find(id);
    return sweep != nullptr && sweep->deleted;
  }
  void On(const SearchExhausted& fact) {
    const SweepBook* sweep = Open(fact.sweep, "is exhausted");
    if (sweep != nullptr && sweep->exhausted)
      Find("sweep " + ToString(fact.sweep) + " is exhausted twice");
  }

  void On(const ProposalBegun& fact) {
    const SweepBook* sweep = Open(fact.sweep, "thinks");
    if (sweep == nullptr) return;
    if (sweep->thinks) Find("sweep " + ToString(fact.sweep) + " thinks of two proposals at once");
    if (sweep->stopping) Find("sweep " + ToString(fact.sweep) + " thinks, and is stopping");
  }
  void On(const SearchWaits& fact) { Open(fact.sweep, "waits"); }

  // ---- trials ------------------------------------------------------------------------------

  void On(const TrialCreated& fact) {
    const SweepBook* sweep = Open(fact.trial.sweep, "has a new trial");
    if (sweep == nullptr) return;
    if (static_cast<int>(fact.trial.number.value) != sweep->Created())
      Find("trial " + ToString(fact.trial) + " is not the next");
    if (sweep->stopping) Find("trial " + ToString(fact.trial) + " is made in a stopping sweep");
    if (!fact.idempotency_key.empty() &&
        !keys_.insert({fact.trial.sweep, fact.idempotency_key}).second)
      Find("two trials for the request " + fact.idempotency_key);
    if (const auto valid = sweep->spec.space.Resolve(fact.config); !valid.ok())
      Find("trial " + ToString(fact.trial) + ": " + valid.error().message);
  }
  void On(const TrialReopened& fact) {
    const TrialBook* trial = books_.Find(fact.record.id);
    if (trial == nullptr || !Ended(trial->state) || trial->live)
      return Find("trial " + ToString(fact.record.id) + " is reopened, and has not ended");
    if (fact.record.attempts != trial->attempts || !(fact.record.config == trial->config))
      Find("trial " + ToString(fact.record.id) + " is reopened as another than it was");
    Open(fact.record.id.sweep, "has a trial reopened");
  }
  void On(const AttemptAssigned& fact) {
    const SweepBook* sweep = Open(fact.attempt.trial.sweep, "starts a gang");
    const TrialBook* trial = Alive(fact.attempt.trial, "is assigned");
    if (sweep == nullptr || trial == nullptr) return;
    if (trial->state == TrialState::kRunning)
      Find("trial " + ToString(trial->id) + " is assigned, and runs");
    if (trial->state == TrialState::kPaused)
      Find("trial " + ToString(trial->id) + " is assigned, and nobody promoted it");
    if (sweep->state == SweepState::kPaused)
      Find(ToString(fact.attempt) + " starts, and its sweep is paused");
    if (sweep->stopping && !trial->requested)
      Find(ToString(fact.attempt) + " starts, and its sweep is stopping");
    if (trial->not_before > now_)
      Find(ToString(fact.attempt) + " starts before its backoff is over");
  }
  void On(const TrialReported& fact) {
    const TrialBook* trial = Alive(fact.attempt.trial, "reports");
    if (trial == nullptr || !trial->live || trial->live->left)
      return Find(ToString(fact.attempt) + " reports, and has left");
    if (fact.report.step <= trial->last_step)
      Find(ToString(fact.attempt) + " reports step " + std::to_string(fact.report.step.value) +
           " after step " + std::to_string(trial->last_step.value));
  }
  void On(const TrialDecided& fact) {
    const TrialBook* trial = Alive(fact.attempt.trial, "is judged");
    if (trial != nullptr && trial->state != TrialState::kRunning)
      Find("trial " + ToString(trial->id) + " is judged, and does not run");
  }
  void On(const TrialPromoted& fact) {
    const TrialBook* trial = Alive(fact.trial, "is promoted");
    if (trial == nullptr) return;
    if (trial->state != TrialState::kPaused || trial->live)
      Find("trial " + ToString(fact.trial) + " is promoted, and does not wait for it");
    if (fact.reason.rule.empty()) Find("trial " + ToString(fact.trial) + " is promoted unsaid why");
    if (!fact.donor) return;
    const CheckpointBook* donor = books_.Find(*fact.donor);
    if (donor == nullptr || donor->dropped)
      Find("trial " + ToString(fact.trial) + " is promoted from a checkpoint that is gone");
  }
  void On(const TrialYielding& fact) { Alive(fact.trial, "is to yield"); }
  void On(const TrialRequeued& fact) {
    const TrialBook* trial = Alive(fact.trial, "is requeued");
    if (trial == nullptr) return;
    // A trial that was paused may have to wait until its gang has left.
    if (trial->live && trial->state != TrialState::kPaused)
      Find("trial " + ToString(fact.trial) + " is requeued, and runs");
    if (trial->state == TrialState::kPending)
      Find("trial " + ToString(fact.trial) + " is requeued twice");
  }
  void On(const TrialEnded& fact) {
    Alive(fact.trial, "ends");
    if (!Ended(fact.state))
      Find("trial " + ToString(fact.trial) + " ends in a state of the living");
  }

  void Expect(SweepId id, SweepState state, const std::string& what) {
    const SweepBook* sweep = books_.Find(id);
    if (sweep == nullptr || sweep->state != state)
      Find("sweep " + ToString(id) + " " + what + ", and was not " + std::string(Name(state)));
  }
  const SweepBook* Open(SweepId id, const std::string& what) {
    const SweepBook* sweep = books_.Find(id);
    if (sweep != nullptr && !Ended(sweep->state)) return sweep;
    Find("sweep " + ToString(id) + " " + what + ", and is not there or has ended");
    return nullptr;
  }
  const TrialBook* Alive(const TrialId& id, const std::string& what) {
    const TrialBook* trial = books_.Find(id);
    if (trial != nullptr && !Ended(trial->state)) return trial;
    Find("trial " + ToString(id) + " " + what + ", and is not there or has ended");
    return nullptr;
  }

  Time now_;
  std::set<std::pair<SweepId, std::string>> keys_;  // of sweeps: with sweep 0
};

}  // namespace

std::unique_ptr<Checker> CheckLifecycle(const Evidence& evidence) {
  return std::make_unique<Lifecycle>(evidence);
}

}  // namespace attune::sim

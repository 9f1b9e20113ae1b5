#include "tests/sim/service/decider.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/state/snapshot.h"
#include "tests/sim/algorithms.h"

namespace attune::sim {
namespace {

// A brain with the fault of a variant.
class FaultyDecider final : public server::Decider {
 public:
  FaultyDecider(Variant variant, Reachable reachable)
      : variant_(variant), brain_(AlgorithmsFor(variant), reachable), reachable_(reachable) {}

  Result<std::vector<Event>> Execute(const Command& original, Time now,
                                     std::string_view actor) override {
    Command command = original;
    if (variant_ == Variant::kForgetsEpoch) AssignToLiveAttempt(command);
    auto* join = std::get_if<JoinExecutor>(&command);
    if (join != nullptr && variant_ == Variant::kForgetsFolders) join->folder.clear();
    auto* reopen = std::get_if<ReopenTrial>(&command);
    if (reopen != nullptr && reopen->from_start && variant_ == Variant::kForgetsEarlier)
      reopen->record.checkpoints.clear();
    const auto* edit = std::get_if<EditSweep>(&command);
    const Sweep* edited = edit == nullptr ? nullptr : state().Find(edit->sweep);
    const SweepSpec before = edited == nullptr ? SweepSpec() : edited->spec;
    auto events = brain_.Execute(command, now, actor);
    if (events.ok() && edited != nullptr && variant_ == Variant::kForgetsEdits)
      ForgetEdit(edit->sweep, before);
    if (events.ok() && variant_ == Variant::kFreesDonor) FreeDonors(*events);
    if (events.ok() && join != nullptr && variant_ == Variant::kForgetsDrains)
      const_cast<State&>(state()).executors.at(join->name).drain.reset();
    if (events.ok() && variant_ == Variant::kForgetsErasedEpochs) ForgetEpochs(*events);
    if (events.ok()) ForgetClosures(command);
    if (events.ok() && variant_ == Variant::kWastesSlots)
      skip_starts_ |= std::ranges::any_of(*events, [](const Event& event) {
        const auto* ended = std::get_if<AttemptEnded>(&event.fact);
        return ended != nullptr && ended->outcome == Outcome::kFinished;
      });
    return events;
  }

  Brain::Portion Advance(Time now) override {
    now = std::max(now, state().last_time);
    std::vector<Event> events;
    if (variant_ == Variant::kGrowsBlindly) Grow(now, events);
    for (;;) {
      // Gangs that started since the reservation are ignored, so more and more of them start.
      if (variant_ == Variant::kIgnoresReservation && state().reservation)
        const_cast<State&>(state()).reservation->since = state().last_epoch;
      if (variant_ == Variant::kReleasesWhenAway && state().reservation &&
          !reachable_(state().reservation->workers.begin()->first).takes)
        Commit({ReservationReleased{state().reservation->sweep, "deliberate fault"}}, now, events);
      if (variant_ == Variant::kOverlooksDepartures) skip_starts_ |= SomeExecutorLeft();
      std::vector<Fact> facts = NextFacts(now);
      if (StartsSomething(facts) && skip_starts_) facts.clear();
      if (facts.empty()) {
        skip_starts_ = false;
        return {std::move(events), false};
      }
      Commit(std::move(facts), now, events);
    }
  }

  Brain& brain() override { return brain_; }

 private:
  const State& state() const { return brain_.state(); }

  static bool StartsSomething(const std::vector<Fact>& facts) {
    return !facts.empty() && (std::holds_alternative<AttemptAssigned>(facts[0]) ||
                              std::holds_alternative<TrialCreated>(facts[0]) ||
                              std::holds_alternative<TrialPromoted>(facts[0]));
  }

  std::vector<Fact> NextFacts(Time now) {
    if (variant_ == Variant::kIgnoresLabels) return AdvanceWithoutLabels(now);
    if (variant_ == Variant::kForgetsShares && state().reservation)
      return AdvanceWithoutShares(now);
    std::vector<Fact> facts = attune::Advance(state(), reachable_, now);
    if (variant_ == Variant::kKeepsReservation && !facts.empty() &&
        std::holds_alternative<ReservationReleased>(facts[0]))
      facts.clear();
    return facts;
  }

  // Decides as if gangs with a share of a GPU had started before the reservation.
  std::vector<Fact> AdvanceWithoutShares(Time now) {
    Reservation& reservation = *const_cast<State&>(state()).reservation;
    const Epoch since = reservation.since;
    for (const auto& [name, workers] : reservation.workers) {
      const auto& attempts = state().executors.at(name).attempts;
      for (auto it = attempts.upper_bound(reservation.since); it != attempts.end(); ++it) {
        if (state().Find(it->second)->live->ranks.front().gpu_percent == 100) break;
        reservation.since = it->first;
      }
    }
    std::vector<Fact> facts = attune::Advance(state(), reachable_, now);
    reservation.since = since;
    return facts;
  }

  // Whether an executor that accepted gangs at the last call no longer does.
  bool SomeExecutorLeft() {
    std::set<std::string> accepting;
    for (const auto& [name, executor] : state().executors) {
      if (reachable_(name).takes) accepting.insert(name);
    }
    const bool left = !std::ranges::includes(accepting, accepting_);
    accepting_ = std::move(accepting);
    return left;
  }

  // Drops the reasons that keep gangs off an executor.
  void ForgetClosures(const Command& command) {
    auto& mutable_state = const_cast<State&>(state());
    const auto* health = std::get_if<ReportHealth>(&command);
    const auto executor = health == nullptr ? mutable_state.executors.end()
                                            : mutable_state.executors.find(health->name);
    if (variant_ == Variant::kForgetsProblems && executor != mutable_state.executors.end())
      executor->second.problem.clear();
    if (variant_ != Variant::kForgetsExclusions) return;
    for (auto& [id, sweep] : mutable_state.sweeps) sweep.excluded.clear();
  }

  static void ForgetEpochs(std::vector<Event>& events) {
    for (Event& event : events) {
      auto* deleted = std::get_if<SweepDeleted>(&event.fact);
      if (deleted != nullptr && deleted->shared) (*deleted->shared)->last_epoch = Epoch(0);
    }
  }

  void Commit(std::vector<Fact> facts, Time now, std::vector<Event>& events) {
    for (Fact& fact : facts) {
      events.push_back({EventSeq(state().last_seq.value + 1), now, std::move(fact)});
      brain_.Replay(events.back());
    }
  }

  void Grow(Time now, std::vector<Event>& events) {
    std::vector<Fact> facts;
    for (const auto& [id, sweep] : state().sweeps) {
      for (const auto& [time, number] : sweep.small) {
        const Trial& trial = *sweep.Find(number);
        if (trial.state == TrialState::kRunning && !trial.yield_verdict)
          facts.push_back(TrialYielding{
              trial.id, Verdict::Resize({.rule = "resize", .text = "deliberate fault"})});
      }
    }
    Commit(std::move(facts), now, events);
  }

  // Makes the searcher use the old search space again.
  void ForgetEdit(SweepId id, const SweepSpec& before) {
    auto& sweeps = const_cast<State&>(state()).sweeps;
    if (const auto sweep = sweeps.find(id); sweep != sweeps.end())
      sweep->second.searcher->Adapt(before);
  }

  // Decides as if no gang required labels. The state is unchanged afterwards.
  std::vector<Fact> AdvanceWithoutLabels(Time now) {
    auto& sweeps = const_cast<State&>(state()).sweeps;
    std::map<SweepId, Requirements> required;
    for (auto& [id, sweep] : sweeps) required[id] = std::exchange(sweep.spec.gang.required, {});
    std::vector<Fact> facts = attune::Advance(state(), reachable_, now);
    for (auto& [id, sweep] : sweeps) sweep.spec.gang.required = std::move(required[id]);
    return facts;
  }

  // Records a fact of any attempt of a trial for the live attempt.
  void AssignToLiveAttempt(Command& command) const {
    auto* record = std::get_if<RecordFact>(&command);
    if (record == nullptr) return;
    std::visit(
        [&](auto& fact) {
          const Trial* trial = state().Find(fact.attempt.trial);
          if (trial == nullptr || !trial->live) return;
          fact.attempt = trial->live->id;
          record->epoch = trial->live->epoch;
        },
        record->fact);
  }

  void FreeDonors(std::vector<Event>& events) {
    std::vector<Fact> dropped;
    for (const Event& event : events) {
      const auto* decided = std::get_if<TrialDecided>(&event.fact);
      if (decided == nullptr || !decided->cloned) continue;
      dropped.push_back(CheckpointDropped{.checkpoint = decided->verdict.donor,
                                          .executor = (*decided->cloned)->executor,
                                          .path = (*decided->cloned)->ref.path,
                                          .reason = "deliberate fault"});
    }
    if (!events.empty()) Commit(std::move(dropped), events.back().time, events);
  }

  Variant variant_;
  Brain brain_;
  Reachable reachable_;
  bool skip_starts_ = false;         // until nothing else happens
  std::set<std::string> accepting_;  // executors that accepted gangs at the last call
};

}  // namespace

std::unique_ptr<server::Decider> MakeDecider(Variant variant, Reachable reachable) {
  switch (variant) {
    case Variant::kForgetsEpoch:
    case Variant::kFreesDonor:
    case Variant::kForgetsEarlier:
    case Variant::kForgetsErasedEpochs:
    case Variant::kForgetsEdits:
    case Variant::kForgetsFolders:
    case Variant::kIgnoresLabels:
    case Variant::kForgetsDrains:
    case Variant::kForgetsProblems:
    case Variant::kForgetsExclusions:
    case Variant::kGrowsBlindly:
    case Variant::kIgnoresReservation:
    case Variant::kForgetsShares:
    case Variant::kReleasesWhenAway:
    case Variant::kKeepsReservation:
    case Variant::kOverlooksDepartures:
    case Variant::kWastesSlots:
      return std::make_unique<FaultyDecider>(variant, std::move(reachable));
    default:
      return server::MakeBrainDecider(AlgorithmsFor(variant), std::move(reachable));
  }
}

std::map<std::string, Reach> RecordingDecider::CurrentReach() {
  std::map<std::string, Reach> reached;
  for (const auto& [name, executor] : brain().state().executors)
    reached.emplace(name, reachable_(name));
  return reached;
}

Result<std::vector<Event>> RecordingDecider::Execute(const Command& command, Time now,
                                                     std::string_view actor) {
  auto events = decider_->Execute(command, now, actor);
  if (events.ok() && !events->empty()) inputs_.push_back({command, now, CurrentReach()});
  return events;
}

Brain::Portion RecordingDecider::Advance(Time now) {
  auto portion = decider_->Advance(now);
  if (!portion.events.empty() || !inputs_.empty())
    inputs_.push_back({std::nullopt, now, CurrentReach()});
  return portion;
}

}  // namespace attune::sim

#include "tests/sim/mind.h"

#include <algorithm>
#include <utility>

#include "core/brain/snapshot.h"
#include "tests/sim/algorithms.h"

namespace attune::sim {
namespace {

class RealMind final : public Mind {
 public:
  explicit RealMind(const Algorithms& algorithms, Reachable reachable)
      : brain_(algorithms, std::move(reachable)) {}
  Result<std::vector<Event>> Execute(const Command& command, Time now) override {
    return brain_.Execute(command, now);
  }
  std::vector<Event> Advance(Time now) override { return brain_.Advance(now); }
  Status Load(std::string_view snapshot) override { return brain_.Load(snapshot); }
  void Replay(const Event& event) override { brain_.Replay(event); }
  const State& state() const override { return brain_.state(); }

 private:
  Brain brain_;
};

// The brain's two moves, written once more, with a fault.
class BrokenMind final : public Mind {
 public:
  BrokenMind(Variant variant, Reachable reachable)
      : variant_(variant), state_(AlgorithmsFor(variant)), reachable_(std::move(reachable)) {}

  Result<std::vector<Event>> Execute(const Command& given, Time now) override {
    now = std::max(now, state_.last_time);
    Command command = given;
    if (variant_ == Variant::kForgetsEpoch) TakeForPresent(command);
    std::vector<Event> events;
    for (bool more = true; more;) {
      auto facts = Decide(state_, command, now);
      if (!facts.ok()) return facts.error();
      more = GoesOn(command, *facts);
      Commit(std::move(*facts), now, events);
    }
    return events;
  }

  std::vector<Event> Advance(Time now) override {
    now = std::max(now, state_.last_time);
    std::vector<Event> events;
    for (;;) {
      // What runs in the reserved gang's shade is forgotten, so that ever more of it starts.
      if (variant_ == Variant::kIgnoresReservation && state_.reservation)
        state_.reservation->since = state_.last_epoch;
      if (variant_ == Variant::kReleasesWhenAway && state_.reservation &&
          !reachable_(state_.reservation->executor))
        Commit({ReservationReleased{state_.reservation->sweep, "wrong on purpose"}}, now, events);
      std::vector<Fact> facts = attune::Advance(state_, reachable_, now);
      if (facts.empty()) return events;
      Commit(std::move(facts), now, events);
    }
  }

  Status Load(std::string_view snapshot) override { return LoadState(snapshot, state_); }
  void Replay(const Event& event) override { Apply(state_, event); }
  const State& state() const override { return state_; }

 private:
  void Commit(std::vector<Fact> facts, Time now, std::vector<Event>& events) {
    for (Fact& fact : facts) {
      const Event event{EventSeq(state_.last_seq.value + 1), now, std::move(fact)};
      Apply(state_, event);
      events.push_back(event);
      const auto* decided = std::get_if<TrialDecided>(&event.fact);
      if (variant_ == Variant::kFreesDonor && decided != nullptr && decided->cloned)
        Free(*decided, now, events);
    }
  }

  // A fact of any attempt of the trial counts as the live one's.
  void TakeForPresent(Command& command) const {
    auto* record = std::get_if<RecordFact>(&command);
    if (record == nullptr) return;
    std::visit(
        [&](auto& fact) {
          const Trial* trial = state_.Find(fact.attempt.trial);
          if (trial == nullptr || !trial->live) return;
          fact.attempt = trial->live->id;
          record->epoch = trial->live->epoch;
        },
        record->fact);
  }

  void Free(const TrialDecided& decided, Time now, std::vector<Event>& events) {
    const Event dropped{EventSeq(state_.last_seq.value + 1), now,
                        CheckpointDropped{.checkpoint = decided.verdict.donor,
                                          .executor = decided.cloned->executor,
                                          .path = decided.cloned->ref.path,
                                          .reason = "wrong on purpose"}};
    Apply(state_, dropped);
    events.push_back(dropped);
  }

  Variant variant_;
  State state_;
  Reachable reachable_;
};

}  // namespace

std::unique_ptr<Mind> MakeMind(Variant variant, Reachable reachable) {
  switch (variant) {
    case Variant::kForgetsEpoch:
    case Variant::kFreesDonor:
    case Variant::kIgnoresReservation:
    case Variant::kReleasesWhenAway:
      return std::make_unique<BrokenMind>(variant, std::move(reachable));
    default:
      return std::make_unique<RealMind>(AlgorithmsFor(variant), std::move(reachable));
  }
}

}  // namespace attune::sim

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/brain/agenda.h"
#include "core/brain/decide.h"
#include "core/brain/thought.h"
#include "core/state/ended.h"
#include "core/state/snapshot.h"
#include "core/state/state.h"

namespace attune {

// The state with its two moves: execute a command, and let follow what follows. Deterministic: the
// same log and the same calls give the same events. One thread.
class Brain {
 public:
  // Gangs are placed on executors only that take them. `algorithms` outlives the brain.
  Brain(const Algorithms& algorithms, Reachable reachable)
      : state_(algorithms), reachable_(std::move(reachable)) {}

  // Decides on the command and applies what it leads to. The events must become durable before
  // anybody outside sees them or their effects. Time does not go back: a `now` before that of the
  // last event counts as the same.
  //
  // `actor` is who asks, by the name of a token. Empty: the executor that the command is about, as
  // it says so itself, or else kService, which all has as its actor that the brain concludes.
  Result<std::vector<Event>> Execute(const Command& command, Time now, std::string_view actor = "");

  // Everything that follows from the state and the time alone, to its end.
  std::vector<Event> Advance(Time now);

  // The same in portions: once there are so many events, the rest is for the next call. What is
  // reachable is asked again for what starts now; whether somebody has come back, only after
  // LookAgain.
  struct Portion {
    std::vector<Event> events;
    bool more = false;
  };
  Portion Advance(Time now, size_t max_events);
  void LookAgain() { agenda_.LookAgain(); }

  // When to call Advance again although nothing has happened; nullopt: there is no need.
  std::optional<Time> Due(Time now) const;

  // Proposals that searchers have yet to think about, begun after this position
  // (core/brain/thought.h).
  std::vector<Thought> Thoughts(EventSeq after = EventSeq(0)) const {
    return attune::Thoughts(state_, after);
  }

  // At start-up: the state as it was saved (core/state/snapshot.h), and the events of the log after
  // it, without those that were erased. REQUIRES for Load: nothing has happened yet. After an error
  // the brain is not to be used.
  Status Load(std::string_view snapshot) { return LoadState(snapshot, state_); }
  void Replay(const Event& event) { Apply(state_, event); }

  // What is left of ended sweeps lies beside the snapshots (core/state/ended.h). What Execute and
  // Replay lack of it has to be brought back first.
  void LetGoOfEnded() { attune::LetGoOfEnded(state_); }
  void LetGoOfEnded(SweepId sweep) { attune::LetGoOfEnded(state_, sweep); }
  Status BringBack(EndedPart part) { return attune::BringBack(state_, std::move(part)); }

  std::string Waiting(const Sweep& sweep) const {
    return attune::Waiting(state_, sweep, reachable_);
  }
  std::string Waiting(const Trial& trial) const {
    return attune::Waiting(state_, trial, reachable_);
  }

  // Whether one that is leaving is to stay, because others have yet to fetch checkpoints of it.
  bool IsNeeded(const std::string& executor) const {
    return attune::IsNeeded(state_, reachable_, executor);
  }

  std::vector<attune::Demand> Demands() const { return attune::Demands(state_, reachable_); }

  const State& state() const { return state_; }

 private:
  void Commit(Fact fact, Time now, std::string_view actor, std::vector<Event>& events);
  void NoteChanges();

  State state_;
  Agenda agenda_;
  Reachable reachable_;
};

}  // namespace attune

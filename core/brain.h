#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/decide.h"
#include "core/state.h"

namespace attune {

// The state with its two moves: execute a command, and let follow what follows. Deterministic: the
// same log and the same calls give the same events. One thread.
class Brain {
 public:
  // Gangs are placed on reachable executors only. `algorithms` outlives the brain.
  Brain(const Algorithms& algorithms, Reachable reachable)
      : state_(algorithms), reachable_(std::move(reachable)) {}

  // Decides on the command and applies what it leads to. The events must become durable before
  // anybody outside sees them or their effects.
  Result<std::vector<Event>> Execute(const Command& command, Time now);

  // Everything that follows from the state alone, to its end.
  std::vector<Event> Advance(Time now);

  // An event of the log, at start-up.
  void Replay(const Event& event) { Apply(state_, event); }

  std::string Waiting(const Sweep& sweep) const {
    return attune::Waiting(state_, sweep, reachable_);
  }

  const State& state() const { return state_; }

 private:
  void Commit(std::vector<Fact> facts, Time now, std::vector<Event>& events);

  State state_;
  Reachable reachable_;
};

}  // namespace attune

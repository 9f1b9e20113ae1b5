#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/brain/agenda.h"
#include "core/brain/decide.h"
#include "core/brain/queue.h"
#include "core/brain/thought.h"
#include "core/state/ended.h"
#include "core/state/snapshot.h"
#include "core/state/state.h"

namespace attune {

// The state with its two operations: execute a command, and derive all consequences. It is
// deterministic: the same log and the same calls give the same events. Not thread-safe.
class Brain {
 public:
  // `reachable` says which executors take gangs now. REQUIRES: `algorithms` outlives the brain.
  Brain(const Algorithms& algorithms, Reachable reachable)
      : state_(algorithms), reachable_(std::move(reachable)) {}

  // Decides on the command and applies the resulting events. The events must become durable before
  // their effects are visible outside. Time does not go back: an earlier `now` counts as the time
  // of the last event.
  //
  // `actor` is the name of the token that asks. If it is empty, the actor is the executor that sent
  // the command, or else kService. Events that the brain concludes itself have the actor kService.
  Result<std::vector<Event>> Execute(const Command& command, Time now, std::string_view actor = "");

  // Applies everything that follows from the state and the time, until nothing more follows.
  std::vector<Event> Advance(Time now);

  // The same, but returns after about `max_events` events; `more` says that the next call
  // continues. It asks again which executors are reachable if a gang may start. Executors that
  // became reachable are noticed for sure only after RecheckReachable.
  struct Portion {
    std::vector<Event> events;
    bool more = false;
  };
  Portion Advance(Time now, size_t max_events);
  void RecheckReachable() { agenda_.RecheckReachable(); }

  // When to call Advance again if nothing happens before; nullopt: never.
  std::optional<Time> Due(Time now) const;

  // Proposals begun after this position that searchers must still compute (core/brain/thought.h).
  std::vector<Thought> Thoughts(EventSeq after = EventSeq(0)) const {
    return attune::Thoughts(state_, after);
  }

  // For start-up: Load reads a snapshot (core/state/snapshot.h), then Replay applies the events of
  // the log after it. After an error of Load, the brain must not be used. REQUIRES for Load: the
  // brain is new.
  Status Load(std::string_view snapshot) { return LoadState(snapshot, state_); }
  void Replay(const Event& event) { Apply(state_, event); }

  // The store keeps the data of ended sweeps (core/state/ended.h). Data that Execute or Replay
  // lacks must be given back first.
  void ReleaseEndedSweeps() { attune::ReleaseEndedSweeps(state_); }
  void ReleaseEndedSweeps(SweepId sweep) { attune::ReleaseEndedSweeps(state_, sweep); }
  Status RestoreEndedSweep(EndedSweepData part) {
    return attune::RestoreEndedSweep(state_, std::move(part));
  }

  std::string Waiting(const Sweep& sweep) const {
    return attune::Waiting(state_, sweep, reachable_, now());
  }
  std::string Waiting(const Trial& trial) const {
    return attune::Waiting(state_, trial, reachable_, now());
  }

  // Whether an executor that is leaving must stay, because others still have to fetch its
  // checkpoints. `or_later`: also others that have not joined yet.
  bool IsNeeded(const std::string& executor, bool or_later) const {
    return attune::IsNeeded(state_, reachable_, executor, or_later, now());
  }

  std::vector<attune::Demand> Demands() const { return attune::Demands(state_, reachable_, now()); }

  // The gangs that wait, in order (core/brain/queue.h).
  GangQueue Queue(size_t first, size_t limit) const {
    return attune::Queue(state_, reachable_, now(), first, limit);
  }

  const State& state() const { return state_; }

 private:
  void Commit(Fact fact, Time now, std::string_view actor, std::vector<Event>& events);
  void NoteChanges();
  // The time of the last call, which may have caused no event.
  Time now() const { return std::max(last_call_, state_.last_time); }

  State state_;
  Time last_call_;
  Agenda agenda_;
  Reachable reachable_;
};

}  // namespace attune

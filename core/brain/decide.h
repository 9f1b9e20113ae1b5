#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/command.h"
#include "core/log/event.h"
#include "core/state/placement.h"
#include "core/state/state.h"

namespace attune {

// What a command leads to. Pure: an error means that nothing happens; no facts that there is
// nothing new (a repeated report, a fact of a superseded epoch).
//
// Several facts of one command are to be applied in order, without anything in between.
Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time now);

// Whether the command is to be decided on again once these facts are applied: a request for a trial
// that had to be created or promoted first gets its attempt then.
bool GoesOn(const Command& command, const std::vector<Fact>& facts);

// What can be asked of an executor now: the one thing about the world that is not in the log.
struct Reach {
  bool sends = false;  // checkpoints that it holds: its stream is open
  bool takes = false;  // gangs: and it is not leaving

  constexpr Reach(bool all) : sends(all), takes(all) {}
  constexpr Reach(bool can_send, bool can_take) : sends(can_send), takes(can_take) {}
};
using Reachable = std::function<Reach(const std::string& executor)>;

// The next thing that follows from the state and the time alone: a limit of a sweep is reached, a
// sweep ends, a checkpoint is dropped, a lease of whoever asked runs out, an executor is taken in
// again or forgotten, a gang grows, a waiting trial or a new one starts. Empty when there is none.
// Apply it, then ask again.
std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now);

// When, after `now`, time alone will make something follow: a backoff, a budget, a lease or the
// quarantine of an executor ends, a gang may grow, a lost executor is forgotten. nullopt:
// never.
std::optional<Time> Due(const State& state, Time now);

// Why the sweep's next gang does not start: a trial waits for its next attempt, or nothing runs.
// Empty when nothing waits for room.
std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable);

// Gangs of one sweep that could start now, were there room.
struct Demand {
  SweepId sweep;
  GangRequest request;  // of the next of them
  int gangs = 0;        // at most; kDemandGangsMax where nothing else bounds them
  std::string reason;   // why it has none: "needs 8 GPUs: n3 has 6 free"
  // Whether the next of them would start if every executor that is not lost were free and took
  // gangs. If not, it waits for another executor.
  bool can_start = true;
};

inline constexpr int kDemandGangsMax = 1000;

// What there is no room for, by sweep. An upper bound: how many trials a scheduler starts before it
// waits for results it says only as they start.
std::vector<Demand> Demands(const State& state, const Reachable& reachable);

// Whether a trial that runs elsewhere next, or is about to, has to have its checkpoint fetched from
// this executor, and from no other.
bool IsNeeded(const State& state, const Reachable& reachable, const std::string& executor);

// Why this trial does not run; empty when it does or will never again.
std::string Waiting(const State& state, const Trial& trial, const Reachable& reachable);

}  // namespace attune

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

// The facts that a command leads to. After an error, nothing happens. No facts means that nothing
// is new: for example, a repeated report, or a fact of an old epoch.
//
// Several facts of one command must be applied in order, with no other event between them.
Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time now);

// Whether the command must be decided again after these facts are applied. A request for a trial
// may first create or promote the trial, and then assign its attempt.
bool NeedsSecondDecision(const Command& command, const std::vector<Fact>& facts);

// What an executor can do now. This is the only input of decisions that is not in the log.
struct Reach {
  bool sends = false;  // it can send checkpoints: its stream is open
  bool takes = false;  // it takes gangs: its stream is open, and it is not leaving

  constexpr Reach(bool all) : sends(all), takes(all) {}
  constexpr Reach(bool can_send, bool can_take) : sends(can_send), takes(can_take) {}
};
using Reachable = std::function<Reach(const std::string& executor)>;

// The next consequence of the state and the time: a sweep reaches a limit or ends, a checkpoint is
// dropped, a client's lease ends, a deletion is due, a quarantine ends, a lost executor is
// forgotten, a gang starts or grows, slots are reserved. Empty if there is none. Apply the facts,
// then call it again.
std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now);

// The first time after `now` when something follows even without an event: a backoff, a budget, a
// lease or a quarantine ends, a gang may grow, a lost executor is forgotten. nullopt: never.
std::optional<Time> Due(const State& state, Time now);

// Why the sweep's next gang does not start now. Empty if no trial waits and some trial runs, or if
// the gang fits.
std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable, Time now);

// Gangs of one sweep that could start now if they fitted.
struct Demand {
  SweepId sweep;
  GangRequest request;  // of the next gang
  int gangs = 0;        // an upper bound, at most kDemandGangsMax
  std::string reason;   // why the next gang does not fit: "needs 8 GPUs: n3 has 6 free"
  // Whether the next gang would start if every executor that is not lost were free and took gangs.
  // If not, it needs another executor.
  bool can_start = true;
};

inline constexpr int kDemandGangsMax = 1000;

// The sweeps whose gangs do not fit now. The numbers of gangs are upper bounds: a scheduler may
// wait for results after some of the trials have started.
std::vector<Demand> Demands(const State& state, const Reachable& reachable, Time now);

// Whether this executor is the only one from which the checkpoint of a trial can be fetched, and
// the trial starts on another executor, now or next. `or_later`: also on an executor that has not
// joined yet.
bool IsNeeded(const State& state, const Reachable& reachable, const std::string& executor,
              bool or_later, Time now);

// Why this trial does not run now. Empty if it runs, or if it has ended.
std::string Waiting(const State& state, const Trial& trial, const Reachable& reachable, Time now);

}  // namespace attune

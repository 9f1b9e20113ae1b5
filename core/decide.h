#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/command.h"
#include "core/event.h"
#include "core/result.h"
#include "core/state.h"

namespace attune {

// What a command leads to. Pure: an error means that nothing happens; no facts that there is
// nothing new (a repeated report, a fact of a superseded epoch).
//
// Several facts of one command are to be applied in order, without anything in between.
Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time now);

// Whether an executor's stream is open now: the one thing about the world that is not in the log.
using Reachable = std::function<bool(const std::string& executor)>;

// The next thing that follows from the state alone: a sweep ends, a waiting trial or a new one
// starts. Empty when there is none. Apply it, then ask again.
std::vector<Fact> Advance(const State& state, const Reachable& reachable);

// Why the sweep's next gang does not start: a trial waits for its next attempt, or nothing runs.
// Empty when nothing waits for room.
std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable);

}  // namespace attune

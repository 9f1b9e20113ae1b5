#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/command.h"
#include "core/state/state.h"

namespace attune {

// The saved data of a sweep that has ended, with which it can be opened again. The hash of the
// bytes identifies it: replaying the log gives the same hash. The state holds the bytes until the
// store has them.
struct EndedSweepData {
  SweepId sweep;
  uint64_t mark = 0;
  std::string bytes;  // empty: only the store has them

  bool Names(const EndedSweepData& other) const {
    return sweep == other.sweep && mark == other.mark;
  }
};

// The data of every ended sweep. A snapshot of the state is complete only together with them.
std::vector<EndedSweepData> AllEndedSweepData(const State& state);

// Frees the bytes of all ended sweeps, or of one, because the store has them now.
void ReleaseEndedSweeps(State& state);
void ReleaseEndedSweeps(State& state, SweepId sweep);

// The data that the state must get back before this command is decided or this event is applied;
// nullopt: none.
std::optional<EndedSweepData> MissingData(const State& state, const Command& command);
std::optional<EndedSweepData> MissingData(const State& state, const Event& event);

// Gives bytes back to the state. Returns kCorrupt if their hash is wrong.
Status RestoreEndedSweep(State& state, EndedSweepData part);

// ---- for Apply and Decide --------------------------------------------------------------------

// Saves a sweep that ends. If there are too many ended sweeps, the sweep that ended first is
// forgotten.
void AddEnded(State& state, const Sweep& sweep);

// The sweep cannot be opened again. Does nothing if that was so before.
void ForgetEnded(State& state, SweepId id);

// Reads the sweep as it was at its end, with the changes of its checkpoints since then.
// REQUIRES: the state has the bytes.
Status ReadEnded(const State& state, SweepId id, Sweep& sweep);

}  // namespace attune

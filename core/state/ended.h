#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/command.h"
#include "core/state/state.h"

namespace attune {

// What is left of a sweep that has ended, so that it can be opened again. It is named by its
// content: whoever replays the log finds the same name. Memory has it until it lies elsewhere.
struct EndedPart {
  SweepId sweep;
  uint64_t mark = 0;
  std::string bytes;  // empty: they lie elsewhere

  bool Names(const EndedPart& other) const { return sweep == other.sweep && mark == other.mark; }
};

// Of every ended sweep: without them a state that was saved does not go on.
std::vector<EndedPart> EndedParts(const State& state);

// All of them, or one, lie elsewhere now.
void LetGoOfEnded(State& state);
void LetGoOfEnded(State& state, SweepId sweep);

// What memory needs back before the command is decided on, or the event applied.
std::optional<EndedPart> Lacks(const State& state, const Command& command);
std::optional<EndedPart> Lacks(const State& state, const Event& event);

// kCorrupt when the bytes are not the ones that were let go.
Status BringBack(State& state, EndedPart part);

// ---- for Apply and Decide --------------------------------------------------------------------

// What is left of a sweep that ends takes its place among the ended; the oldest there is forgotten
// when they are too many.
void AddEnded(State& state, const Sweep& sweep);

// It cannot be opened again; whether it could does not matter.
void ForgetEnded(State& state, SweepId id);

// The sweep as it was left, without the checkpoints and pins that it has lost since. REQUIRES:
// nothing of it is lacking.
Status ReadEnded(const State& state, SweepId id, Sweep& sweep);

}  // namespace attune

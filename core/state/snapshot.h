#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/state/state.h"

namespace attune {

// The whole state as bytes, algorithms included: what replaying the log up to state.last_seq gives,
// beside what is left of ended sweeps (core/state/ended.h), of which it has the marks. Two states
// are the same exactly when their bytes are.
std::string SaveState(const State& state);

// REQUIRES: the state is fresh. kCorrupt when the bytes are not this build's; then the state is not
// to be used, and the log must be replayed from its beginning.
Status LoadState(std::string_view bytes, State& state);

// One sweep as bytes; the same rules.
std::string SaveSweep(const Sweep& sweep);
Status LoadSweep(std::string_view bytes, const Algorithms& algorithms, Sweep& sweep);

}  // namespace attune

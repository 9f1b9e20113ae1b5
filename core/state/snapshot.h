#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/state/state.h"

namespace attune {

// The whole state as bytes, including the searchers and schedulers. It equals the result of
// replaying the log up to state.last_seq. For ended sweeps it has only the hashes of their data
// (core/state/ended.h). Two states are equal exactly if their bytes are.
std::string SaveState(const State& state);

// Returns kCorrupt if this build cannot read the bytes. Then the state must not be used, and the
// log must be replayed from its beginning. REQUIRES: the state is new.
Status LoadState(std::string_view bytes, State& state);

// The same for one sweep.
std::string SaveSweep(const Sweep& sweep);
Status LoadSweep(std::string_view bytes, const Algorithms& algorithms, Sweep& sweep);

}  // namespace attune

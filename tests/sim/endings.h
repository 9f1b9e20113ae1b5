#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.h"

namespace attune::sim {

// Where a trial's program ends by itself and with success, before its last step: it has converged,
// or has nothing to do. Each of its attempts ends there, one that goes on from there at once.
struct Ending {
  enum class Way {
    kSilent,  // in place of the report at that step
    kLast,    // behind that report, which then waits for nobody, as the SDK's last one
    kLeaves,  // the same, but where the report waits nobody waits for the answer
  };
  Step at{0};
  Way way = Way::kSilent;
};

// Of so many of the trials; nullopt: it goes on to the last step of its sweep.
std::optional<Ending> EndingOf(const TrialId& trial, uint64_t seed, double share, Step last);

}  // namespace attune::sim

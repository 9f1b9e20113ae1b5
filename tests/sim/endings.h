#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.h"

namespace attune::sim {

// An early, successful end of a trial's program, for example because it has converged. Every
// attempt of the trial ends at this step. An attempt that resumes from this step ends at once.
struct Ending {
  enum class Way {
    kSilent,  // ends instead of reporting this step
    kLast,    // ends after the report, which asks for no verdict, like the last report of the SDK
    kLeaves,  // ends after the report; the report may ask for a verdict, but the program does not
              // wait
  };
  Step at{0};
  Way way = Way::kSilent;
};

// Draws the ending of a trial. A share of 1 - `share` of all trials get nullopt and train to the
// last step of the sweep.
std::optional<Ending> EndingOf(const TrialId& trial, uint64_t seed, double share, Step last);

}  // namespace attune::sim

#pragma once

#include "cli/simulate/curves.h"
#include "cli/simulate/tally.h"
#include "core/algorithms/algorithms.h"
#include "core/base/result.h"
#include "core/log/sweep_spec.h"

namespace attune::simulate {

struct Assumptions {
  int slots = 8;      // ranks that run at once: each has the CPUs, GPUs and memory it asks for
  int executors = 1;  // that share the slots evenly; a gang runs on one of them
  Seconds step{1};    // that a step takes where the curves do not say
  int trials_endless = 100'000;  // after so many, a sweep that sets no number has no end
};

// Runs a sweep to its end in virtual time: a brain decides, gangs train by the curves, and nothing
// ever fails. To start a gang, to save a checkpoint, to think and to judge a report take no time.
// The same arguments give the same summary.
//
// Errors: kInvalid, when the sweep cannot run on these slots or would not end.
//
// REQUIRES: the spec is a checked one; slots, executors and step are positive.
Result<Summary> Simulate(const SweepSpec& spec, const Algorithms& algorithms, const Curves& curves,
                         const Assumptions& assumed);

}  // namespace attune::simulate

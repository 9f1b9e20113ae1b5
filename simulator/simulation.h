#pragma once

#include <functional>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"
#include "simulator/curves.h"
#include "simulator/tally.h"

namespace attune::simulate {

struct Assumptions {
  int slots = 8;      // ranks that run at once: each has the CPUs, GPUs and memory it asks for
  int executors = 1;  // that share the slots evenly; a gang runs on one of them
  Seconds step{1};    // that a step takes where the curves do not say
  int trials_endless = 100'000;         // after so many, a sweep that sets no number has no end
  Seconds start{0};                     // that a gang occupies its slots beside its steps
  int64_t max_reports = 0;              // after so many it is given up; 0: never
  std::function<bool()> given_up = {};  // asked now and then whether to leave off
};

// Runs a sweep to its end in virtual time: a brain decides, gangs train by the curves, and nothing
// fails that the curves do not say. To save a checkpoint, to think and to judge a report take no
// time. The same arguments give the same summary; `observe` is shown every event of it.
//
// Errors: kInvalid, when the sweep cannot run on these slots or would not end, begins with results
// of earlier ones, or was given up.
//
// REQUIRES: the spec is a checked one; slots, executors and step are positive.
Result<Summary> Simulate(const SweepSpec& spec, const Algorithms& algorithms, const Curves& curves,
                         const Assumptions& assumed,
                         const std::function<void(const Event&)>& observe = {});

}  // namespace attune::simulate

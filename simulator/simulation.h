#pragma once

#include <functional>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"
#include "simulator/curves.h"
#include "simulator/tally.h"

namespace attune::simulate {

struct Assumptions {
  int slots = 8;      // ranks that can run at once; each gets the CPUs, GPUs and memory it needs
  int executors = 1;  // share the slots evenly; a gang runs on one executor
  Seconds step{1};    // duration of a step if the curves do not know it
  // A sweep without max_trials counts as endless after this many trials.
  int endless_trials = 100'000;
  Seconds startup{0};       // time that a gang occupies its slots before it trains
  int64_t max_reports = 0;  // the simulation fails after this many; 0: no limit
  // Called now and then; the simulation stops when it returns true.
  std::function<bool()> is_cancelled = {};
};

// Runs a sweep to its end in virtual time. A brain makes the decisions, and gangs train along the
// curves. Only failures of the curves occur. Checkpoints, searchers and schedulers take no time.
// Equal arguments give equal summaries. `observe` receives every event.
//
// Errors: kInvalid if the sweep cannot run on these slots, would never end, uses a warm start, or
// was cancelled.
//
// REQUIRES: `spec` passed its validation; slots, executors and step are positive.
Result<Summary> Simulate(const SweepSpec& spec, const Algorithms& algorithms, const Curves& curves,
                         const Assumptions& assumed,
                         const std::function<void(const Event&)>& observe = {});

}  // namespace attune::simulate

#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"
#include "simulator/recording.h"
#include "simulator/tally.h"

namespace attune::simulate {

// The maximum number of reports of a replay, in both courses together.
inline constexpr int64_t kMaxReplayedReports = 4'000'000;

// The result of a recorded sweep under another scheduler or other limits.
//
// The new scheduler may train a trial further than its recording. The later reports of such a trial
// are *unknown*, so the sweep runs twice. One course assumes the worst (every metric is NaN), the
// other repeats the best report of the whole sweep. Results that agree in both courses are certain;
// numbers that differ are bounds.
struct Replay {
  struct Trial {
    TrialState state = TrialState::kPending;
    Step step{0};         // the last step that it reached
    std::string reason;   // why it ended
    bool beyond = false;  // it trained past its recording
  };
  struct Course {
    Summary summary;            // `best` only considers recorded reports
    std::vector<Trial> trials;  // by number; trials that never started are pending
  };

  Course if_worst;
  Course if_best;  // equal to `if_worst` if no trial is unknown

  bool IsUnknown(TrialNumber trial) const {
    return if_worst.trials[trial.value].beyond || if_best.trials[trial.value].beyond;
  }
};

// Runs the recorded configurations in their original order, on `slots` slots of one executor.
//
// - Each trial reports its recorded values, and its steps take the recorded time.
// - In addition, each attempt occupies its slots for the average startup time of the recording.
// - A trial that failed, or ended without an order to stop, does so again.
// - The recording of a trial ends where it received another trial's checkpoint.
//
// `is_cancelled`, if given, is called now and then; the replay stops when it returns true.
//
// Errors: kInvalid, if
// - no recorded report counts, or some report lacks a metric that a limit needs;
// - the replay was cancelled;
// - the scheduler copies weights between trials, because no recording shows the effect of that;
// - the sweep cannot run on these slots.
//
// REQUIRES: `spec` differs from the spec of the recording only in scheduler, last step and limits.
Result<Replay> ReplayUnder(const Recording& recording, const SweepSpec& spec,
                           const Algorithms& algorithms, int slots,
                           const std::function<bool()>& is_cancelled = {});

}  // namespace attune::simulate

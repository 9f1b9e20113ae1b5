#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"
#include "simulator/recording.h"
#include "simulator/tally.h"

namespace attune::simulate {

// A replay is given up beyond so many reports, those of both courses.
inline constexpr int64_t kMaxReplayedReports = 4'000'000;

// A recorded sweep under another scheduler and other limits.
//
// Where a trial would go on beyond what was recorded of it, nobody knows what it would report. Such
// a trial is *unknown*, and the sweep is run twice: as if it had been the worst from there on
// (every metric NaN), and as if it had been as good as the best report of the whole sweep. What is
// the same in both does not hang on it; numbers that differ are bounds.
struct Replay {
  struct Trial {
    TrialState state = TrialState::kPending;
    Step step{0};         // the furthest
    std::string reason;   // why it ended there
    bool beyond = false;  // it went on beyond its recording
  };
  struct Course {
    Summary summary;            // its `best` is one that was recorded
    std::vector<Trial> trials;  // by number; those that the sweep did not come to are pending
  };

  Course if_worst;
  Course if_best;  // the same where no trial is unknown

  bool Unknown(TrialNumber trial) const {
    return if_worst.trials[trial.value].beyond || if_best.trials[trial.value].beyond;
  }
};

// Tries the recorded configurations in the order in which they were tried, on so many slots of one
// executor; each trial reports what it reported, and takes the time that it took. Attempts occupy
// their slots beside that for as long as the recorded ones did on average. A trial that failed or
// ended by itself does so again. What was given another's checkpoint is recorded up to there.
//
// `given_up`, where there is one, is asked now and then whether to leave off.
//
// Errors: kInvalid, when nothing was reported that counts, or not at every report what a limit asks
// for; when it was given up; when this scheduler clones, since what
// trials would report with another's weights is nowhere recorded; when the sweep cannot run on
// these slots.
//
// REQUIRES: `spec` is that of the recording but for its scheduler, last step and limits.
Result<Replay> ReplayUnder(const Recording& recording, const SweepSpec& spec,
                           const Algorithms& algorithms, int slots,
                           const std::function<bool()>& given_up = {});

}  // namespace attune::simulate

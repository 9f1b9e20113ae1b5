#pragma once

#include <string>

#include "cli/client/event_stream.h"
#include "cli/watch/model.h"

namespace attune::cli {

// What happened, in one line without its end, for logs: "trial 3 stopped at step 1: accuracy 0.31
// is rank 4 of 5 …". Empty for events that change no state (reports, checkpoints, verdicts to
// continue). `sweep` has the event already applied.
std::string EventLine(const ServerEvent& event, const SweepModel& sweep);

// "7/12 trials, 1 running, 5 stopped, best accuracy 0.871 (trial 3)".
std::string SummaryLine(const SweepModel& sweep);

// The reason a trial or sweep has, behind its name and state; a reason that begins with the state
// does not repeat it.
std::string WithReason(const std::string& subject, const std::string& state,
                       const std::string& reason);

}  // namespace attune::cli

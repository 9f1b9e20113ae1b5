#pragma once

#include <string>

#include "cli/client/event_stream.h"
#include "cli/watch/model.h"

namespace attune::cli {

// Describes an event in one line, without a line end: "trial 3 stopped at step 1: accuracy 0.31 is
// rank 4 of 5 …". Empty for events that change no state, such as reports. `sweep` already includes
// the event.
std::string EventLine(const ServerEvent& event, const SweepModel& sweep);

// "7/12 trials, 1 running, 5 stopped, best accuracy 0.871 (trial 3)".
std::string SummaryLine(const SweepModel& sweep);

// "SUBJECT STATE: REASON". Does not repeat the state if the reason begins with it.
std::string WithReason(const std::string& subject, const std::string& state,
                       const std::string& reason);

}  // namespace attune::cli

#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/text/style.h"
#include "cli/watch/model.h"

namespace attune::cli {

// The block that `run` and `watch` redraw in place: a line of counts, the rungs, and the running
// and best trials. Not larger than the terminal. `now` is in seconds since 1970.
std::vector<std::string> LiveView(const SweepModel& sweep, const Style& style, TerminalSize size,
                                  double now);

// The estimated time left, such as "~3h10m", from the trials that have ended. Empty until three
// have.
std::string TimeLeft(const SweepModel& sweep, double now);

}  // namespace attune::cli

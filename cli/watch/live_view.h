#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/text/style.h"
#include "cli/watch/model.h"

namespace attune::cli {

// The block that `run` and `watch` redraw in place: a line of counts, the rungs, and the trials
// that run beside the best ones. As wide and as high as the terminal at most. `now` in seconds
// since 1970.
std::vector<std::string> LiveView(const SweepModel& sweep, const Style& style, TerminalSize size,
                                  double now);

// "~3h10m" of work left, judged by the trials that have ended; empty before three have.
std::string TimeLeft(const SweepModel& sweep, double now);

}  // namespace attune::cli

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/interrupt.h"
#include "cli/watch/progress.h"

namespace attune::cli {

struct WatchOptions {
  std::string sweep;
  bool from_start = false;  // show every event since the sweep was created
  // With from_start: skip events of executors before this time (seconds since 1970), because they
  // belong to earlier runs.
  double executors_since = 0;
  std::optional<std::chrono::duration<double>> timeout;
  // No other executor can join. The watch ends once the sweep's next gang can never start.
  bool executors_are_fixed = false;
};

enum class WatchEnd { kSweepEnded, kInterrupted, kTimedOut, kCannotStart };

// Follows a sweep until it ends. Reconnects if the server restarts, and gives up after a minute
// without it. Errors: refusals of the server, and kUnavailable.
Result<WatchEnd> WatchSweep(Api& api, const WatchOptions& options, Progress& progress,
                            Interrupt& interrupt);

}  // namespace attune::cli

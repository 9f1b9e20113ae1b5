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
  bool from_start = false;  // tell every event since the sweep was created, not only those to come
  // With from_start, seconds since 1970: what befell executors before is another run's.
  double executors_since = 0;
  std::optional<std::chrono::duration<double>> timeout;
  // No other executor can join: the watch ends once the sweep's next gang can never start.
  bool executors_are_fixed = false;
};

enum class WatchEnd { kSweepEnded, kInterrupted, kTimedOut, kCannotStart };

// Follows a sweep until it ends. The server may go away and come back meanwhile; it is given up
// after a minute without it. Errors: the server's refusals, and kUnavailable.
Result<WatchEnd> WatchSweep(Api& api, const WatchOptions& options, Progress& progress,
                            Interrupt& interrupt);

}  // namespace attune::cli

#pragma once

#include <functional>

#include "core/base/ids.h"

namespace attune::server {

using Clock = std::function<Time()>;

// Wall time at the call, and steady time since: goes on evenly whatever happens to the machine's
// clock.
Clock SteadyClock();

// Wall time at each call.
Clock WallClock();

}  // namespace attune::server

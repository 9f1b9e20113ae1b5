#pragma once

#include <functional>

#include "core/base/ids.h"

namespace attune::server {

using Clock = std::function<Time()>;

// A clock that starts at the current wall time and then advances steadily, even if somebody sets
// the machine's clock.
Clock SteadyClock();

// The wall time at each call.
Clock WallClock();

}  // namespace attune::server

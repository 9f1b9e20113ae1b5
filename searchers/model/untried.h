#pragma once

#include <functional>

#include "core/log/suggestion.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// What `propose(attempt)` gives at attempt 0. In a finite space: at the first of so many attempts
// whose configuration no trial has had; without one, the first such configuration of all; and where
// there is none either, the end.
Suggestion Untried(const Record& record, int attempts, const std::function<Config(int)>& propose);

}  // namespace attune::searchers

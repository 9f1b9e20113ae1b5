#pragma once

#include <functional>

#include "core/log/suggestion.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// In a finite space a model proposes so often, where all that it proposes is known; then
// configurations are drawn at random, so often before the space is gone through.
inline constexpr int kModelAttempts = 16;
inline constexpr int kRandomAttempts = 64;

// What `propose(attempt)` gives at attempt 0. In a finite space: at the first of all these attempts
// whose configuration no trial has had; without one, the first such configuration of all; and where
// there is none either, the end. `explain(attempt, config)` is asked at most once: for what is
// given, where it is a model's.
Suggestion Untried(const Record& record, const std::function<Config(int)>& propose,
                   const std::function<Rationale(int, const Config&)>& explain);

}  // namespace attune::searchers

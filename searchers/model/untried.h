#pragma once

#include <functional>

#include "core/log/suggestion.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// In a finite space a searcher tries kModelAttempts proposals of its model. If all were tried
// before, it draws kRandomAttempts at random. If these were tried too, it searches the space in
// order.
inline constexpr int kModelAttempts = 16;
inline constexpr int kRandomAttempts = 64;

// Returns `propose(0)` in an infinite space. In a finite space it returns the first of these
// proposals that `is_tried` denies; if there is none, the first such configuration of the space;
// and if there is none either, Exhausted. `propose(attempt)` draws at random if attempt >=
// kModelAttempts. `explain(attempt, config)` is called at most once, for a proposal of the model.
Suggestion ProposeUntried(const Cube& cube, const std::function<bool(const Config&)>& is_tried,
                          const std::function<Config(int)>& propose,
                          const std::function<Rationale(int, const Config&)>& explain);

// The same for a searcher with a record.
Suggestion ProposeUntried(const Record& record, const std::function<Config(int)>& propose,
                          const std::function<Rationale(int, const Config&)>& explain);

}  // namespace attune::searchers

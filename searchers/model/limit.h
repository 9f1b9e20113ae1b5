#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "core/log/sweep_spec.h"

namespace attune::searchers {

// Checks whether a searcher supports a sweep. Each function returns the error, or nullopt.

// Checks that a limit ends the sweep, for a searcher that never runs out of proposals. `what` is
// the subject of the message, such as "random search". A sweep in which another program asks for
// trials needs no limit.
std::optional<Error> CheckHasEnd(const SweepSpec& spec, std::string_view what);

// The same for a searcher that ends when it has proposed a whole finite space.
std::optional<Error> CheckHasEndIfInfinite(const SweepSpec& spec, std::string_view what);

// Checks that the sweep has no warm start, for a searcher that does not use one.
std::optional<Error> CheckNoWarmStart(const SweepSpec& spec, std::string_view name);

// Checks that the sweep has one metric.
std::optional<Error> CheckOneMetric(const SweepSpec& spec, std::string_view name);

}  // namespace attune::searchers

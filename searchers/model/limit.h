#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "core/log/sweep_spec.h"

namespace attune::searchers {

// What a searcher cannot serve of a sweep; nullopt where it can.

// The error of a sweep that nothing would end where its searcher always has one more proposal.
// `what` begins the sentence: "random search". Trials that are asked for end with the asking.
std::optional<Error> CheckHasEnd(const SweepSpec& spec, std::string_view what);

// The same of a searcher that is done when it has proposed all of a finite space.
std::optional<Error> CheckHasEndIfInfinite(const SweepSpec& spec, std::string_view what);

// The error of a sweep that begins with results of earlier ones, of which a searcher makes nothing.
std::optional<Error> CheckNoWarmStart(const SweepSpec& spec, std::string_view name);

// The error of a sweep with several metrics where the searcher `name` improves one.
std::optional<Error> CheckOneMetric(const SweepSpec& spec, std::string_view name);

}  // namespace attune::searchers

#pragma once

#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/log/sweep_spec.h"

namespace attune::searchers {

// The error of a sweep that nothing would end where its searcher always has one more proposal;
// nullopt where something does. `what` begins the sentence: "random search". Trials that are asked
// for end with the asking.
std::optional<Error> WithoutEnd(const SweepSpec& spec, std::string_view what);

}  // namespace attune::searchers

#pragma once

#include <optional>
#include <vector>

#include "core/space/search_space.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

// The search space of `parameters`; nullopt, with faults, when it has any.
std::vector<std::string> NamesOf(const std::vector<Parameter>& parameters);

std::optional<SearchSpace> ReadSpace(const Spot& parameters, Faults& faults);

// Values of a configuration of the space, as `Complete` takes them; nullopt, with faults, when
// there is none that has them.
std::optional<Config> ReadConfig(const Spot& config, const SearchSpace& space, Faults& faults);

// Those of `initial_points`. Faulty ones are left out.
std::vector<Config> ReadInitialPoints(const Spot& points, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile

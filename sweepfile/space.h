#pragma once

#include <optional>
#include <vector>

#include "core/space/search_space.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

// The search space of `parameters`; nullopt, with faults, when it has any.
std::optional<SearchSpace> ReadSpace(const Spot& parameters, Faults& faults);

// A configuration, complete in the space; nullopt, with faults, when it is none.
std::optional<Config> ReadConfig(const Spot& config, const SearchSpace& space, Faults& faults);

// The configurations of `initial_points`, each complete in the space. Faulty ones are left out.
std::vector<Config> ReadInitialPoints(const Spot& points, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile

#pragma once

#include <optional>
#include <vector>

#include "core/space/search_space.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

std::vector<std::string> NamesOf(const std::vector<Parameter>& parameters);

// Reads the search space of `parameters`; nullopt if it has faults.
std::optional<SearchSpace> ReadSpace(const Spot& parameters, Faults& faults);

// Reads some values of a configuration, for Complete (core/space/draw.h). Nullopt, with faults, if
// no configuration of the space has these values.
std::optional<Config> ReadConfig(const Spot& config, const SearchSpace& space, Faults& faults);

// Reads `initial_points`. Faulty points are left out.
std::vector<Config> ReadInitialPoints(const Spot& points, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile

#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"
#include "core/log/sweep_spec.h"
#include "simulator/simulation.h"

namespace attune::cli {

// A simulated sweep and its result.
struct Simulated {
  const SweepSpec& spec;
  const simulate::Assumptions& assumed;
  std::string curves;  // as the user named them
  const simulate::Summary& summary;
};

std::vector<std::string> SimulationSections(const Simulated& simulated, const Style& style);
Json SimulationJson(const Simulated& simulated);

}  // namespace attune::cli

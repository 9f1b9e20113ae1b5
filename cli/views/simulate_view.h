#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"
#include "core/log/sweep_spec.h"
#include "simulator/simulation.h"

namespace attune::cli {

// What was simulated, and what came of it.
struct Simulated {
  const SweepSpec& spec;
  const simulate::Assumptions& assumed;
  std::string curves;  // as they were asked for
  const simulate::Summary& summary;
};

std::vector<std::string> SimulationSections(const Simulated& simulated, const Style& style);
Json SimulationJson(const Simulated& simulated);

}  // namespace attune::cli

#include "tests/sim/metrics.h"

#include <limits>
#include <string>

#include "core/base/random.h"

namespace attune::sim {

Metrics MetricsAt(const TrialId& trial, Step step, double loss) {
  constexpr double kNotFinite = 0.02;  // of all reports
  RandomStream random(trial.sweep.value, trial.number, "sim/cost/" + std::to_string(step.value));
  const bool finite = random.Uniform(0, 1) >= kNotFinite;
  const double cost = finite ? random.Uniform(0, 1) : std::numeric_limits<double>::quiet_NaN();
  return {{"loss", loss}, {"cost", cost}};
}

}  // namespace attune::sim

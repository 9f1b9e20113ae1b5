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
  const double within = random.Uniform(0, 1);  // of the unit of time
  return {{"loss", loss}, {"cost", cost}, {kSamples, static_cast<double>(step.value) + within}};
}

Step NextStep(const TrialId& trial, Step step, bool measured) {
  if (!measured) return Step(step.value + 1);
  RandomStream random(trial.sweep.value, trial.number, "sim/time/" + std::to_string(step.value));
  return Step(step.value + random.Integer(1, 3));
}

}  // namespace attune::sim

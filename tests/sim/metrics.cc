#include "tests/sim/metrics.h"

#include <limits>
#include <string>

#include "core/base/random.h"

namespace attune::sim {

Metrics MetricsAt(const TrialId& trial, Step step, double loss) {
  constexpr double kNotFiniteShare = 0.02;
  RandomStream random(trial.sweep.value, trial.number, "sim/cost/" + std::to_string(step.value));
  const bool finite = random.Uniform(0, 1) >= kNotFiniteShare;
  const double cost = finite ? random.Uniform(0, 1) : std::numeric_limits<double>::quiet_NaN();
  const double fraction = random.Uniform(0, 1);  // samples since the last whole step
  return {{"loss", loss}, {"cost", cost}, {kSamples, static_cast<double>(step.value) + fraction}};
}

Step NextStep(const TrialId& trial, Step step, bool measured) {
  if (!measured) return Step(step.value + 1);
  RandomStream random(trial.sweep.value, trial.number, "sim/time/" + std::to_string(step.value));
  return Step(step.value + random.Integer(1, 3));
}

}  // namespace attune::sim

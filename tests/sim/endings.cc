#include "tests/sim/endings.h"

#include "core/base/random.h"

namespace attune::sim {

std::optional<Ending> EndingOf(const TrialId& trial, uint64_t seed, double share, Step last) {
  RandomStream random(seed, trial.number, "sim/ending");
  if (random.Uniform() >= share) return std::nullopt;
  return Ending{.at = Step(random.Integer(1, last.value)),
                .way = static_cast<Ending::Way>(random.Integer(0, 2))};
}

}  // namespace attune::sim

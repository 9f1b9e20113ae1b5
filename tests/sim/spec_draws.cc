#include "tests/sim/spec_draws.h"

#include <string>

#include "tests/sim/algorithms.h"
#include "tests/sim/metrics.h"

namespace attune::sim {

void DrawTimeUnit(SweepSpec& spec) {
  RandomStream random(spec.seed, TrialNumber{}, "sim/time");
  if (random.Uniform() < 0.2) spec.time_attr = kSamples;
}

void DrawGrowth(SweepSpec& spec) {
  if (spec.gang.min_workers == 0) return;
  RandomStream random(spec.seed, TrialNumber{}, "sim/growth");
  spec.gang.grow = static_cast<GrowthPolicy>(random.Integer(0, 2));
}

void DrawFiles(SweepSpec& spec) {
  if (spec.External()) return;
  RandomStream random(spec.seed, TrialNumber{}, "sim/files");
  if (random.Uniform() < 0.25)
    spec.program.packages = EnvironmentSpec{.python = "/requirements.txt"};
  if (random.Uniform() < 0.25) spec.program.data = {{"a", "https://host/a", std::string(64, '0')}};
}

void DrawOptions(SweepSpec& spec, RandomStream& random) {
  const AlgorithmSpec with_defaults = spec.scheduler;
  auto& options = spec.scheduler.options;
  const auto draw = [&](const char* name, int64_t low, int64_t high) {
    if (const auto option = options.find(name); option != options.end())
      option->second = random.Integer(low, high);
  };
  const auto coin = [&random] { return random.Integer(1, 2) == 1; };
  if (spec.scheduler.name == "asha" && coin())
    options.insert_or_assign("mode", Value(std::string("promote")));
  draw("reduction_factor", 2, 3);
  draw("brackets", 1, 2);
  draw("min_samples", 1, 3);
  draw("interval", 1, 3);
  draw("perturbation_interval", 1, 3);
  draw("population", 0, 6);
  if (const auto option = options.find("synchronous"); option != options.end())
    option->second = coin();
  if (!TestAlgorithms().MakeScheduler(spec).ok()) spec.scheduler = with_defaults;
}

}  // namespace attune::sim

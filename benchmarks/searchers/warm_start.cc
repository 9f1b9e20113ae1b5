// searcher_warm_start [SEEDS [INSTANCE [SEARCHER]]]: measures the gain from the results of an
// earlier sweep. Prints the Markdown table of docs/benchmarks.md. Seed i is instance INSTANCE + i
// (INSTANCE is 0 by default) of each problem.
//
// The earlier sweep uses tpe and half of the budget of 20 + 40·√dimensions trials. The later sweep
// is on a copy of the problem whose optimum is moved by a twentieth of each range in a random
// direction, or on an unrelated instance. The table shows regrets after a quarter, a half and all
// of the budget, as multiples of the regrets without a warm start: geometric means, with 95 %
// intervals from 2,000 bootstrap samples of whole problems.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "benchmarks/mean.h"
#include "benchmarks/searchers/problems.h"
#include "core/base/random.h"
#include "searchers/ask_tell.h"
#include "searchers/model/cube.h"

namespace attune::benchmarks {
namespace {

using searchers::AskTell;
using searchers::Cube;

constexpr double kShift = 0.05;
constexpr double kLeastRegret = 1e-3;  // relative to the mean regret of random points
constexpr std::array kParts{0.25, 0.5, 1.0};

int Budget(const Problem& problem) {
  return static_cast<int>(std::ceil(20 + 40 * std::sqrt(problem.dimensions)));
}

Problem Shifted(Problem problem, uint64_t seed) {
  auto loss = problem.loss;
  const Cube cube(problem.space);
  RandomStream random(seed, TrialNumber(0), "shift");
  std::vector<double> shift;
  for (size_t k = 0; k < cube.size(); ++k) {
    const bool list = cube.dimensions()[k].kind == Cube::Kind::kChoice;
    const double offset = random.Uniform() < 0.5 ? -kShift : kShift;
    shift.push_back(list ? 0 : offset);
  }
  problem.loss = [=](const Config& config) {
    const auto point = cube.Place(config).value();
    return loss(cube.Build([&](size_t k) {
      const double at = point[k] + shift[k];
      if (shift[k] == 0 || std::isnan(at)) return point[k];
      return at < 0 ? -at : at > 1 ? 2 - at : at;  // mirrors points outside the range
    }));
  };
  return problem;
}

AskTell MakeTuner(const Problem& problem, const std::string& searcher, uint64_t seed,
                  std::vector<WarmStart> warm_start) {
  return AskTell::Make(problem.space.parameters(), {.searcher = searcher,
                                                    .seed = seed,
                                                    .objectives = {Minimise("loss")},
                                                    .warm_start = std::move(warm_start)})
      .value();
}

WarmStart RunEarlierSweep(const Problem& problem, uint64_t seed) {
  AskTell tuner = MakeTuner(problem, "tpe", seed + 7'000, {});
  std::vector<std::pair<double, Config>> results;
  for (int i = 0; i < Budget(problem) / 2; ++i) {
    const auto trial = tuner.Ask();
    if (!trial) break;
    results.emplace_back(problem.loss(trial->config), trial->config);
    ATTUNE_CHECK(tuner.Tell(trial->number, results.back().first).ok());
  }
  std::ranges::stable_sort(results, {}, &std::pair<double, Config>::first);
  WarmStart start{.from = SweepId(1), .results = std::ssize(results)};
  for (size_t i = 0; i < results.size(); ++i) {
    const double rank = (static_cast<double>(i) + 0.5) / static_cast<double>(results.size());
    start.taken.push_back({{}, std::move(results[i].second), rank});
    start.taken.back().from.sweep = start.from;
  }
  return start;
}

// The logarithms of the regrets after each fraction in kParts of the budget.
std::array<double, kParts.size()> Regrets(const Problem& problem, const std::string& searcher,
                                          uint64_t seed, std::vector<WarmStart> warm_start) {
  AskTell tuner = MakeTuner(problem, searcher, seed, std::move(warm_start));
  std::array<double, kParts.size()> regrets{};
  double best = std::numeric_limits<double>::infinity();
  double random = 0;  // sum of the regrets of 100 random points
  RandomStream stream(seed, TrialNumber(0), "yardstick");
  const Cube cube(problem.space);
  for (int i = 0; i < 100; ++i) {
    random +=
        problem.loss(cube.Build([&](size_t k) { return cube.FromUniform(k, stream.Uniform()); })) -
        problem.optimum;
  }
  const int budget = Budget(problem);
  for (int told = 0, part = 0; told < budget; ++told) {
    if (const auto trial = tuner.Ask()) {
      const double loss = problem.loss(trial->config);
      best = std::min(best, loss);
      ATTUNE_CHECK(tuner.Tell(trial->number, loss).ok());
    }
    while (part < std::ssize(kParts) && told + 1 >= kParts[static_cast<size_t>(part)] * budget) {
      const double regret = (best - problem.optimum) / (random / 100);
      regrets[static_cast<size_t>(part++)] = std::log(std::max(regret, kLeastRegret));
    }
  }
  return regrets;
}

void Print(const std::map<std::string, std::vector<double>>& by_problem) {
  std::vector<double> means;
  for (const auto& [name, logs] : by_problem) {
    means.push_back(std::accumulate(logs.begin(), logs.end(), 0.0) /
                    static_cast<double>(logs.size()));
  }
  const auto [mean, low, high] = GeometricMeanOf(means);
  std::printf(" %.2f [%.2f, %.2f] |", mean, low, high);
}

void Run(uint64_t seeds, uint64_t first, const std::vector<std::string>& searchers) {
  std::printf("| searcher | earlier sweep | ¼ budget | ½ budget | budget |\n");
  std::printf("| --- | --- | ---: | ---: | ---: |\n");
  for (const std::string& searcher : searchers) {
    std::array<std::array<std::map<std::string, std::vector<double>>, kParts.size()>, 2> ratios;
    for (uint64_t seed = first + 1; seed <= first + seeds; ++seed) {
      const std::vector<Problem> others = StandardProblems(seed + 100'000);
      const std::vector<Problem> problems = StandardProblems(seed);
      for (size_t i = 0; i < problems.size(); ++i) {
        const Problem& problem = problems[i];
        const std::string name = problem.name + " " + std::to_string(problem.dimensions);
        const Problem target = Shifted(problem, seed);
        const auto cold = Regrets(target, searcher, seed, {});
        const auto near = Regrets(target, searcher, seed, {RunEarlierSweep(problem, seed)});
        const auto far = Regrets(target, searcher, seed, {RunEarlierSweep(others[i], seed)});
        for (size_t part = 0; part < kParts.size(); ++part) {
          ratios[0][part][name].push_back(near[part] - cold[part]);
          ratios[1][part][name].push_back(far[part] - cold[part]);
        }
      }
    }
    for (size_t kind = 0; kind < 2; ++kind) {
      std::printf("| `%s` | %s |", searcher.c_str(), kind == 0 ? "shifted" : "unrelated");
      for (const auto& ratio : ratios[kind]) Print(ratio);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int first = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc > 4 || seeds < 1 || first < 0) {
    std::fprintf(stderr, "usage: searcher_warm_start [SEEDS [INSTANCE [SEARCHER]]]\n");
    return 2;
  }
  std::vector<std::string> searchers{"tpe", "gp", "cmaes"};
  if (argc > 3) searchers = {argv[3]};
  attune::benchmarks::Run(static_cast<uint64_t>(seeds), static_cast<uint64_t>(first), searchers);
}

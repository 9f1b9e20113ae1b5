#include "searchers/nsga2.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/result.h"
#include "searchers/model/limit.h"
#include "searchers/model/rationale.h"
#include "searchers/model/variation.h"

namespace attune::searchers {
namespace {

constexpr double kCrossover = 0.9;         // share of children that cross half of their numbers
constexpr double kDistributionIndex = 20;  // larger: children are nearer to their parents

Result<std::unique_ptr<Searcher>> MakeNsga2(const SweepSpec& spec) {
  if (auto error = CheckHasEndIfInfinite(spec, "NSGA-II")) return *error;
  return {std::make_unique<Nsga2>(spec)};
}

}  // namespace

Nsga2::Nsga2(const SweepSpec& spec)
    : seed_(spec.seed), population_(spec, Population::Keeps::kBest) {}

Suggestion Nsga2::Suggest(ProposalNumber proposal) const {
  Parents parents;
  const auto breed = [&](RandomStream& random) {
    parents.mother = Parent(random);
    parents.father = Parent(random);
    return Child(parents, random);
  };
  const auto explain = [&](const Config& child) {
    const auto [mother, father] = parents;
    const std::string changes = DescribeChanges(population_.record(), mother, child);
    Rationale rationale{.rule = "crossover",
                        .from = {TrialNumber(mother)},
                        .results = std::ssize(population_.trials()),
                        .text = "child of trial " + std::to_string(mother)};
    if (father != mother) {
      rationale.from.emplace_back(father);
      rationale.text += " and trial " + std::to_string(father);
    }
    if (!changes.empty()) rationale.text += ": changed from the first, " + changes;
    return rationale;
  };
  return population_.Suggest(proposal, RandomStream(seed_, proposal, "nsga2/suggest"),
                             "have results", breed, explain);
}

// The better of two: the population is in the order of rank and crowding.
uint32_t Nsga2::Parent(RandomStream& random) const {
  const std::vector<uint32_t>& trials = population_.trials();
  const int64_t one = random.Integer(0, std::ssize(trials) - 1);
  const int64_t other = random.Integer(0, std::ssize(trials) - 1);
  return trials[static_cast<size_t>(std::min(one, other))];
}

Config Nsga2::Child(Parents& parents, RandomStream& random) const {
  const Record& record = population_.record();
  const Cube& cube = record.cube();
  const auto [mother, father] = parents;
  bool has_both = false;
  const bool crosses = random.Uniform() < kCrossover;
  const auto dimensions = static_cast<int64_t>(cube.size());
  const auto mutated = static_cast<size_t>(dimensions > 0 ? random.Integer(0, dimensions - 1) : 0);
  const Config child = cube.Build([&](size_t dimension) {
    const double alone = record.Coordinate(mother, dimension);
    const double other = record.Coordinate(father, dimension);
    double coordinate = std::isnan(alone) ? other : alone;
    if (std::isnan(coordinate)) return cube.FromUniform(dimension, random.Uniform());
    if (crosses && !std::isnan(other) && random.Uniform() < 0.5) {
      coordinate = CrossOver(cube, dimension, coordinate, other, kDistributionIndex, random);
    }
    has_both = has_both || coordinate != alone;
    if (dimension != mutated) return coordinate;
    return Mutate(cube, dimension, coordinate, kDistributionIndex, random);
  });
  if (!has_both) parents.father = mother;
  return child;
}

Entry<Searcher> Nsga2Entry() {
  return {.name = "nsga2",
          .help = "Crosses and mutates the best trials, for several metrics (NSGA-II)",
          .options = {{.name = "population",
                       .fallback = int64_t{40},
                       .min = 4,
                       .max = 10'000,
                       .help = "Population size; the first population is a Sobol sequence"}},
          .make = MakeNsga2};
}

}  // namespace attune::searchers

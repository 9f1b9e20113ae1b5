#include "searchers/evolution.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "searchers/model/limit.h"
#include "searchers/model/rationale.h"
#include "searchers/model/variation.h"

namespace attune::searchers {
namespace {

constexpr double kMutationIndex = 10;  // larger: children are nearer to their parents

int64_t TournamentOf(const SweepSpec& spec) {
  return std::get<int64_t>(spec.searcher.options.at("tournament"));
}

Result<std::unique_ptr<Searcher>> MakeEvolution(const SweepSpec& spec) {
  if (auto error = CheckHasEndIfInfinite(spec, "evolution")) return *error;
  return {std::make_unique<Evolution>(spec)};
}

}  // namespace

Evolution::Evolution(const SweepSpec& spec)
    : tournament_(TournamentOf(spec)),
      seed_(spec.seed),
      population_(spec, Population::Keeps::kNewest) {}

Suggestion Evolution::Suggest(ProposalNumber proposal) const {
  uint32_t parent = 0;
  const auto breed = [&](RandomStream& random) { return Child(parent = Parent(random), random); };
  const auto explain = [&](const Config& child) {
    const std::string changes = DescribeChanges(population_.record(), parent, child);
    return Rationale{.rule = "mutation",
                     .from = {TrialNumber(parent)},
                     .results = std::ssize(population_.trials()),
                     .text = "mutation of trial " + std::to_string(parent) +
                             (changes.empty() ? "" : ": " + changes)};
  };
  return population_.Suggest(proposal, RandomStream(seed_, proposal, "evolution/suggest"),
                             "have ended", breed, explain);
}

uint32_t Evolution::Parent(RandomStream& random) const {
  const std::vector<uint32_t>& trials = population_.trials();
  std::vector<uint32_t> sample;
  for (int64_t i = 0; i < tournament_; ++i)
    sample.push_back(trials[static_cast<size_t>(random.Integer(0, std::ssize(trials) - 1))]);
  return population_.BestOf(std::move(sample), 1)[0];
}

Config Evolution::Child(uint32_t parent, RandomStream& random) const {
  const Record& record = population_.record();
  const Cube& cube = record.cube();
  std::vector<size_t> present;
  for (size_t i = 0; i < cube.size(); ++i) {
    if (!std::isnan(record.Coordinate(parent, i))) present.push_back(i);
  }
  const auto last = static_cast<int64_t>(present.size()) - 1;
  const size_t mutated = last < 0 ? 0 : present[static_cast<size_t>(random.Integer(0, last))];
  return cube.Build([&](size_t dimension) {
    const double coordinate = record.Coordinate(parent, dimension);
    if (std::isnan(coordinate)) return cube.FromUniform(dimension, random.Uniform());
    if (dimension != mutated) return coordinate;
    return Mutate(cube, dimension, coordinate, kMutationIndex, random);
  });
}

void Evolution::Adapt(const SweepSpec& spec) {
  tournament_ = TournamentOf(spec);
  population_.Adapt(spec);
}

Entry<Searcher> EvolutionEntry() {
  return {
      .name = "evolution",
      .help = "Mutates the best of a sample of the newest trials (ageing evolution)",
      .options = {{.name = "population",
                   .fallback = int64_t{20},
                   .min = 2,
                   .max = 10'000,
                   .help = "Population size; the first population is a Sobol sequence"},
                  {.name = "tournament",
                   .fallback = int64_t{10},
                   .min = 1,
                   .max = 10'000,
                   .help = "Sample size for each proposal; the best of the sample is the parent"}},
      .make = MakeEvolution};
}

}  // namespace attune::searchers

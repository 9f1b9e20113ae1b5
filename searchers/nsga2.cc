#include "searchers/nsga2.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/result.h"
#include "searchers/model/fronts.h"
#include "searchers/model/limit.h"
#include "searchers/model/rationale.h"
#include "searchers/model/untried.h"
#include "searchers/model/variation.h"

namespace attune::searchers {
namespace {

constexpr double kCrossover = 0.9;         // of children, and of these half of the numbers
constexpr double kDistributionIndex = 20;  // how near to its parents a child is

size_t SizeOf(const AlgorithmSpec& spec) {
  return static_cast<size_t>(std::get<int64_t>(spec.options.at("population")));
}

Result<std::unique_ptr<Searcher>> MakeNsga2(const SweepSpec& spec) {
  if (auto error = WithoutEndInRange(spec, "NSGA-II")) return *error;
  return {std::make_unique<Nsga2>(spec)};
}

}  // namespace

Nsga2::Nsga2(const SweepSpec& spec)
    : size_(SizeOf(spec.searcher)), seed_(spec.seed), record_(spec), first_(record_, spec.seed) {}

Suggestion Nsga2::Suggest(ProposalNumber proposal) const {
  RandomStream random(seed_, proposal, "nsga2/suggest");
  const bool complete = population_.size() >= size_ && !first_.Repeats(proposal);
  Parents parents;
  const auto propose = [&](int attempt) {
    if (complete && attempt < kModelAttempts) {
      parents = ParentsOf(random);
      return Child(parents, random);
    }
    return first_.Propose(record_.cube(), proposal, attempt, random);
  };
  return Untried(record_, propose, [&](int attempt, const Config& config) {
    if (!complete) {
      return first_.Explain(proposal, attempt,
                            "until " + std::to_string(size_) + " trials have results");
    }
    const auto [mother, father] = parents;
    const std::string changes = Changes(record_, mother, config);
    Rationale rationale{.rule = "crossover",
                        .from = {TrialNumber(mother)},
                        .results = std::ssize(population_),
                        .text = "child of trial " + std::to_string(mother)};
    if (father != mother) {
      rationale.from.emplace_back(father);
      rationale.text += " and trial " + std::to_string(father);
    }
    if (!changes.empty()) rationale.text += ": other than the first, " + changes;
    return rationale;
  });
}

// The better one of two: rank and crowding are the order of the population.
uint32_t Nsga2::Parent(RandomStream& random) const {
  const auto last = static_cast<int64_t>(population_.size()) - 1;
  const int64_t one = random.Integer(0, last);
  const int64_t other = random.Integer(0, last);
  return population_[static_cast<size_t>(std::min(one, other))];
}

Nsga2::Parents Nsga2::ParentsOf(RandomStream& random) const {
  const uint32_t mother = Parent(random);
  return {mother, Parent(random)};
}

Config Nsga2::Child(Parents& parents, RandomStream& random) const {
  const Cube& cube = record_.cube();
  const auto [mother, father] = parents;
  bool of_both = false;
  const bool crosses = random.Uniform() < kCrossover;
  const auto dimensions = static_cast<int64_t>(cube.size());
  const auto mutated = static_cast<size_t>(dimensions > 0 ? random.Integer(0, dimensions - 1) : 0);
  const Config child = cube.Build([&](size_t dimension) {
    const double alone = record_.At(mother, dimension);
    const double other = record_.At(father, dimension);
    double coordinate = std::isnan(alone) ? other : alone;
    if (std::isnan(coordinate)) return cube.FromUniform(dimension, random.Uniform());
    if (crosses && !std::isnan(other) && random.Uniform() < 0.5) {
      coordinate = Crossed(cube, dimension, coordinate, other, kDistributionIndex, random);
    }
    of_both = of_both || coordinate != alone;
    if (dimension != mutated) return coordinate;
    return Mutated(cube, dimension, coordinate, kDistributionIndex, random);
  });
  if (!of_both) parents.father = mother;
  return child;
}

void Nsga2::Observe(const Event& event) {
  const auto news = record_.Observe(event);
  if (!news) return;
  if (news->what == Record::What::kPrior) {
    first_ = FirstPopulation(record_, seed_);
    return;
  }
  std::erase(population_, news->trial);
  if (record_.trial(news->trial).standing > Standing::kInfeasible) return;
  population_.push_back(news->trial);
  Select();
}

void Nsga2::Select() {
  std::ranges::sort(population_, [this](uint32_t a, uint32_t b) { return record_.Better(a, b); });
  population_ = BestOf(record_, population_, size_, Within::kCrowding);
}

void Nsga2::Adapt(const SweepSpec& spec) {
  size_ = SizeOf(spec.searcher);
  record_.Adapt(spec);
  first_ = FirstPopulation(record_, seed_);
  // Whoever lies in the space now, of all there were.
  population_.clear();
  for (uint32_t trial = 0; trial < record_.size(); ++trial) {
    if (record_.trial(trial).standing <= Standing::kInfeasible) population_.push_back(trial);
  }
  Select();
}

void Nsga2::Save(ArchiveWriter& archive) const {
  record_.Save(archive);
  archive(population_);
}

void Nsga2::Load(ArchiveReader& archive) {
  record_.Load(archive);
  first_ = FirstPopulation(record_, seed_);
  archive(population_);
  if (std::ranges::any_of(population_, [&](uint32_t trial) { return trial >= record_.size(); })) {
    population_.clear();
    archive.Fail();
  }
}

Entry<Searcher> Nsga2Entry() {
  return {.name = "nsga2",
          .help = "crosses and mutates the best so far, for several metrics at once (NSGA-II)",
          .options = {{.name = "population",
                       .fallback = int64_t{40},
                       .min = 4,
                       .max = 10'000,
                       .help = "trials that may be parents; the first ones are a Sobol sequence"}},
          .make = MakeNsga2};
}

}  // namespace attune::searchers

#include "searchers/evolution.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/result.h"
#include "searchers/model/fronts.h"
#include "searchers/model/limit.h"
#include "searchers/model/rationale.h"
#include "searchers/model/untried.h"
#include "searchers/model/variation.h"

namespace attune::searchers {
namespace {

constexpr double kMutationIndex = 10;  // how near to its parent a child is

Evolution::Options EvolutionOptions(const AlgorithmSpec& spec) {
  return {.population = std::get<int64_t>(spec.options.at("population")),
          .tournament = std::get<int64_t>(spec.options.at("tournament"))};
}

Result<std::unique_ptr<Searcher>> MakeEvolution(const SweepSpec& spec) {
  if (auto error = WithoutEndInRange(spec, "evolution")) return *error;
  return {std::make_unique<Evolution>(spec)};
}

}  // namespace

Evolution::Evolution(const SweepSpec& spec)
    : options_(EvolutionOptions(spec.searcher)),
      seed_(spec.seed),
      record_(spec),
      first_(record_, spec.seed) {}

Suggestion Evolution::Suggest(ProposalNumber proposal) const {
  RandomStream random(seed_, proposal, "evolution/suggest");
  const bool complete =
      static_cast<int64_t>(population_.size()) >= options_.population && !first_.Repeats(proposal);
  uint32_t parent = 0;
  const auto propose = [&](int attempt) {
    if (complete && attempt < kModelAttempts) return Child(parent = Parent(random), random);
    return first_.Propose(record_.cube(), proposal, attempt, random);
  };
  return Untried(record_, propose, [&](int attempt, const Config& config) {
    if (!complete) {
      return first_.Explain(proposal, attempt,
                            "until " + std::to_string(options_.population) + " trials have ended");
    }
    const std::string changes = Changes(record_, parent, config);
    return Rationale{.rule = "mutation",
                     .from = {TrialNumber(parent)},
                     .results = std::ssize(population_),
                     .text = "mutation of trial " + std::to_string(parent) +
                             (changes.empty() ? "" : ": " + changes)};
  });
}

uint32_t Evolution::Parent(RandomStream& random) const {
  const auto last = static_cast<int64_t>(population_.size()) - 1;
  std::vector<uint32_t> sample;
  for (int64_t i = 0; i < options_.tournament; ++i) {
    sample.push_back(population_[static_cast<size_t>(random.Integer(0, last))]);
  }
  std::ranges::sort(sample, [this](uint32_t a, uint32_t b) { return record_.Better(a, b); });
  return BestOf(record_, sample, 1, Within::kCrowding)[0];
}

Config Evolution::Child(uint32_t parent, RandomStream& random) const {
  const Cube& cube = record_.cube();
  std::vector<size_t> present;
  for (size_t i = 0; i < cube.size(); ++i) {
    if (!std::isnan(record_.At(parent, i))) present.push_back(i);
  }
  const auto last = static_cast<int64_t>(present.size()) - 1;
  const size_t mutated = last < 0 ? 0 : present[static_cast<size_t>(random.Integer(0, last))];
  return cube.Build([&](size_t dimension) {
    const double coordinate = record_.At(parent, dimension);
    if (std::isnan(coordinate)) return cube.FromUniform(dimension, random.Uniform());
    if (dimension != mutated) return coordinate;
    return Mutated(cube, dimension, coordinate, kMutationIndex, random);
  });
}

void Evolution::Observe(const Event& event) {
  const auto news = record_.Observe(event);
  if (!news) return;
  if (news->what == Record::What::kPrior) {
    first_ = FirstPopulation(record_, seed_);
    return;
  }
  std::erase(population_, news->trial);
  if (record_.trial(news->trial).standing >= Standing::kRunning) return;
  population_.push_back(news->trial);
  Retire();
}

void Evolution::Retire() {
  const auto most = static_cast<size_t>(options_.population);
  if (population_.size() <= most) return;
  population_.erase(population_.begin(), population_.end() - static_cast<ptrdiff_t>(most));
}

void Evolution::Adapt(const SweepSpec& spec) {
  options_ = EvolutionOptions(spec.searcher);
  record_.Adapt(spec);
  first_ = FirstPopulation(record_, seed_);
  std::erase_if(population_, [this](uint32_t trial) {
    return record_.trial(trial).standing >= Standing::kRunning;
  });
  Retire();
}

void Evolution::Save(ArchiveWriter& archive) const {
  record_.Save(archive);
  archive(population_);
}

void Evolution::Load(ArchiveReader& archive) {
  record_.Load(archive);
  first_ = FirstPopulation(record_, seed_);
  archive(population_);
  if (std::ranges::any_of(population_, [&](uint32_t trial) { return trial >= record_.size(); })) {
    population_.clear();
    archive.Fail();
  }
}

Entry<Searcher> EvolutionEntry() {
  return {.name = "evolution",
          .help = "mutates the best of some of the trials that ended last (ageing evolution)",
          .options = {{.name = "population",
                       .fallback = int64_t{20},
                       .min = 2,
                       .max = 10'000,
                       .help = "trials that may be parents; the first ones are a Sobol sequence"},
                      {.name = "tournament",
                       .fallback = int64_t{10},
                       .min = 1,
                       .max = 10'000,
                       .help = "drawn from them for each proposal; the best is its parent"}},
          .make = MakeEvolution};
}

}  // namespace attune::searchers

#include "searchers/sobol.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "searchers/model/limit.h"

namespace attune::searchers {
namespace {

Result<std::unique_ptr<Searcher>> MakeSobol(const SweepSpec& spec) {
  if (auto error = WithPrior(spec, "sobol")) return *error;
  if (auto error = WithoutEnd(spec, "Sobol search")) return *error;
  return {std::make_unique<Sobol>(spec.space, spec.seed)};
}

}  // namespace

Sobol::Sobol(SearchSpace space, uint64_t seed)
    : seed_(seed), cube_(std::move(space)), sequence_(cube_.size(), seed) {}

Suggestion Sobol::Suggest(ProposalNumber proposal) const {
  Config config = cube_.Build([&](size_t dimension) {
    return cube_.FromUniform(dimension, sequence_.At(dimension, proposal.value));
  });
  return Proposed{std::move(config),
                  {.rule = "sobol",
                   .text = "point " + std::to_string(proposal.value + 1) + " of a Sobol sequence"}};
}

void Sobol::Adapt(const SweepSpec& spec) {
  if (spec.space != cube_.space()) *this = Sobol(spec.space, seed_);
}

Entry<Searcher> SobolEntry() {
  return {.name = "sobol",
          .help = "points that fill the space evenly (scrambled Sobol); needs a limit of the sweep",
          .options = {},
          .make = MakeSobol};
}

}  // namespace attune::searchers

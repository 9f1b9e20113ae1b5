#include "searchers/random.h"

#include "base/result.h"
#include "core/base/random.h"
#include "core/space/draw.h"
#include "searchers/model/limit.h"

namespace attune::searchers {
namespace {

Result<std::unique_ptr<Searcher>> MakeRandom(const SweepSpec& spec) {
  if (auto error = WithPrior(spec, "random")) return *error;
  if (auto error = WithoutEnd(spec, "random search")) return *error;
  return {std::make_unique<Random>(spec.space, spec.seed)};
}

}  // namespace

Random::Random(SearchSpace space, uint64_t seed) : space_(std::move(space)), seed_(seed) {}

Suggestion Random::Suggest(ProposalNumber proposal) const {
  Config drawn;
  for (const size_t place : space_.order()) {
    const Parameter& parameter = space_.parameters()[place];
    if (!space_.Active(parameter, drawn)) continue;
    RandomStream stream(seed_, proposal, "random/" + parameter.name);
    drawn.Set(parameter.name, Draw(parameter.domain, stream));
  }
  return Proposed{space_.Resolve(drawn).value(), {.rule = "random", .text = "drawn at random"}};
}

Entry<Searcher> RandomEntry() {
  return {.name = "random",
          .help = "every trial drawn from the space by itself; needs a limit of the sweep",
          .options = {},
          .make = MakeRandom};
}

}  // namespace attune::searchers

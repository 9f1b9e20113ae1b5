#include "searchers/random.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "core/base/random.h"
#include "core/space/draw.h"
#include "searchers/model/limit.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

Result<std::unique_ptr<Searcher>> MakeRandom(const SweepSpec& spec) {
  if (auto error = CheckNoWarmStart(spec, "random")) return *error;
  if (!ProposesOnce(Cube(spec.space))) {
    if (auto error = CheckHasEnd(spec, "random search")) return *error;
  }
  return {std::make_unique<Random>(spec.space, spec.seed)};
}

}  // namespace

Random::Random(SearchSpace space, uint64_t seed) : cube_(std::move(space)), seed_(seed) {}

Suggestion Random::Suggest(ProposalNumber proposal) const {
  return ProposeUntried(
      cube_,
      [this](const Config& config) { return ProposesOnce(cube_) && tried_.Contains(config); },
      [&](int attempt) { return DrawConfig(proposal, attempt); },
      [](int, const Config&) { return Rationale{.rule = "random", .text = "drawn at random"}; });
}

Config Random::DrawConfig(ProposalNumber proposal, int attempt) const {
  const SearchSpace& space = cube_.space();
  const std::string again = attempt == 0 ? "" : "/again-" + std::to_string(attempt);
  Config drawn;
  for (const size_t place : space.order()) {
    const Parameter& parameter = space.parameters()[place];
    if (!space.IsActive(parameter, drawn)) continue;
    RandomStream stream(seed_, proposal, "random/" + parameter.name + again);
    drawn.Set(parameter.name, Draw(parameter.domain, stream));
  }
  return space.Resolve(drawn).value();
}

Entry<Searcher> RandomEntry() {
  return {.name = "random",
          .help = "Draws each trial independently; an infinite space needs a limit in stop",
          .options = {},
          .make = MakeRandom};
}

}  // namespace attune::searchers

#include "searchers/sobol.h"

#include <string>
#include <utility>

#include "base/result.h"
#include "core/base/random.h"
#include "searchers/model/limit.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

Result<std::unique_ptr<Searcher>> MakeSobol(const SweepSpec& spec) {
  if (auto error = CheckNoWarmStart(spec, "sobol")) return *error;
  if (!ProposesOnce(Cube(spec.space))) {
    if (auto error = CheckHasEnd(spec, "Sobol search")) return *error;
  }
  return {std::make_unique<Sobol>(spec.space, spec.seed)};
}

}  // namespace

Sobol::Sobol(SearchSpace space, uint64_t seed)
    : seed_(seed), cube_(std::move(space)), sequence_(cube_.size(), seed) {}

Suggestion Sobol::Suggest(ProposalNumber proposal) const {
  const auto propose = [&](int attempt) {
    return cube_.Build([&](size_t dimension) {
      if (attempt == 0)
        return cube_.FromUniform(dimension, sequence_.Coordinate(dimension, proposal.value));
      RandomStream stream(seed_, proposal,
                          "sobol/" + cube_.Name(dimension) + "/again-" + std::to_string(attempt));
      return cube_.FromUniform(dimension, stream.Uniform());
    });
  };
  const auto explain = [&](int attempt, const Config&) {
    const std::string point =
        "point " + std::to_string(proposal.value + 1) + " of a Sobol sequence";
    if (attempt == 0) return Rationale{.rule = "sobol", .text = point};
    return Rationale{.rule = "random", .text = "drawn at random: " + point + " was tried"};
  };
  return ProposeUntried(
      cube_,
      [this](const Config& config) { return ProposesOnce(cube_) && tried_.Contains(config); },
      propose, explain);
}

void Sobol::Adapt(const SweepSpec& spec) {
  if (spec.space == cube_.space()) return;
  cube_ = Cube(spec.space);
  sequence_ = SobolSequence(cube_.size(), seed_);
}

Entry<Searcher> SobolEntry() {
  return {.name = "sobol",
          .help =
              "Covers the space evenly (scrambled Sobol sequence); an infinite space needs a limit "
              "in stop",
          .options = {},
          .make = MakeSobol};
}

}  // namespace attune::searchers

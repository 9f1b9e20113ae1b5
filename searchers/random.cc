#include "searchers/random.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/space/domain.h"
#include "searchers/model/limit.h"

namespace attune::searchers {
namespace {

double LogUniform(double low, double high, RandomStream& stream) {
  const double value = std::exp(stream.Uniform(std::log(low), std::log(high)));
  return std::clamp(value, low, high);  // exp and log may round past either end
}

// The place of the last step at or below a draw from [min, last step + step).
int64_t LogUniformStep(double min, double step, int64_t count, RandomStream& stream) {
  const double draw = LogUniform(min, min + static_cast<double>(count) * step, stream);
  const double place = (draw - min) / step;
  if (place >= static_cast<double>(count)) return count - 1;  // rounded past the end
  return std::clamp(static_cast<int64_t>(place), int64_t{0}, count - 1);
}

Value Draw(const Domain& domain, RandomStream& stream) {
  const auto count = CountValues(domain);
  if (!count) {
    const auto& range = std::get<FloatDomain>(domain);
    return range.scale == Scale::kLog ? LogUniform(range.min, range.max, stream)
                                      : stream.Uniform(range.min, range.max);
  }
  if (const auto* reals = std::get_if<FloatDomain>(&domain); reals && reals->scale == Scale::kLog) {
    return ValueAt(domain, LogUniformStep(reals->min, *reals->step, *count, stream));
  }
  if (const auto* ints = std::get_if<IntDomain>(&domain); ints && ints->scale == Scale::kLog) {
    return ValueAt(domain, LogUniformStep(static_cast<double>(ints->min),
                                          static_cast<double>(ints->step), *count, stream));
  }
  return ValueAt(domain, stream.Integer(0, *count - 1));
}

Result<std::unique_ptr<Searcher>> Make(const SweepSpec& spec) {
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
  return space_.Resolve(drawn).value();
}

Entry<Searcher> RandomEntry() {
  return {.name = "random",
          .help = "every trial drawn from the space by itself; needs a limit of the sweep",
          .options = {},
          .make = Make};
}

}  // namespace attune::searchers

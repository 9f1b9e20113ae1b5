#include "core/space/draw.h"

#include <algorithm>

#include "base/result.h"
#include "core/base/elementary.h"
#include "core/space/domain.h"

namespace attune {
namespace {

double LogUniform(double low, double high, RandomStream& stream) {
  const double value = Exp(stream.Uniform(Log(low), Log(high)));
  return std::clamp(value, low, high);  // Exp and Log may round past either end
}

// The index of the last step at or below a draw from [min, last step + step).
int64_t LogUniformStep(double min, double step, int64_t count, RandomStream& stream) {
  const double draw = LogUniform(min, min + static_cast<double>(count) * step, stream);
  const double place = (draw - min) / step;
  if (place >= static_cast<double>(count)) return count - 1;  // rounded past the end
  return std::clamp(static_cast<int64_t>(place), int64_t{0}, count - 1);
}

}  // namespace

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

Result<Config> Complete(const SearchSpace& space, const Config& given, RandomStream& stream) {
  const SearchSpace::Values values = space.ValuesByPlace(given);
  SearchSpace::Values complete = values;
  std::vector<Value> drawn(values.size());
  std::vector<Config::Entry> entries = given.entries();
  for (const size_t place : space.order()) {
    const Parameter& parameter = space.parameters()[place];
    const bool is_given = values[place] != nullptr;
    for (const Condition& condition : parameter.when) {
      const size_t parent = *space.PlaceOf(condition.parent);
      const bool decided = values[parent] != nullptr || std::holds_alternative<ConstantDomain>(
                                                            space.parameters()[parent].domain);
      if (is_given && !decided)
        return Error{ErrorCode::kInvalid, parameter.name + ": depends on " + condition.parent +
                                              "; also set " + condition.parent};
    }
    if (is_given || !space.IsActive(parameter, complete)) continue;
    drawn[place] = Draw(parameter.domain, stream);
    complete[place] = &drawn[place];
    entries.emplace_back(parameter.name, drawn[place]);
  }
  return space.Resolve(Config(std::move(entries)));
}

}  // namespace attune

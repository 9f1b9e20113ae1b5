#include "searchers/model/cube.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/base/elementary.h"
#include "core/space/domain.h"

namespace attune::searchers {
namespace {

// The minimum width of a range in logarithms. A narrower range is treated as linear, because its
// logarithms are too similar.
constexpr double kNarrow = 1e-6;

// A key that is equal for parameters with the same conditions, in any order.
std::vector<std::string> Signature(const Parameter& parameter) {
  std::vector<std::string> texts;
  for (const Condition& condition : parameter.when) {
    std::string text = condition.parent;
    for (const Value& value : condition.any_of) {
      text += '\0' + std::string(TypeName(value)) + FormatValue(value);
    }
    text += '\0' + (condition.at_least ? FormatReal(*condition.at_least) : "");
    text += '\0' + (condition.at_most ? FormatReal(*condition.at_most) : "");
    texts.push_back(std::move(text));
  }
  std::ranges::sort(texts);
  return texts;
}

struct Range {
  double min = 0;
  double step = 0;  // 0: none
};

Range RangeOf(const Domain& domain) {
  if (const auto* integer = std::get_if<IntDomain>(&domain)) {
    return {static_cast<double>(integer->min), static_cast<double>(integer->step)};
  }
  const auto& real = std::get<FloatDomain>(domain);
  return {real.min, real.step.value_or(0)};
}

bool IsLog(const Domain& domain) {
  if (const auto* integer = std::get_if<IntDomain>(&domain)) return integer->scale == Scale::kLog;
  const auto* real = std::get_if<FloatDomain>(&domain);
  return real != nullptr && real->scale == Scale::kLog;
}

}  // namespace

Cube::Cube(SearchSpace space) : space_(std::move(space)) {
  std::vector<std::vector<std::string>> signatures;
  for (const size_t place : space_.order()) {
    const Parameter& parameter = space_.parameters()[place];
    const Domain& domain = parameter.domain;
    if (std::holds_alternative<ConstantDomain>(domain)) continue;
    Dimension dimension{.parameter = place, .count = CountValues(domain).value_or(0)};
    if (std::holds_alternative<CategoricalDomain>(domain)) {
      dimension.kind = Kind::kChoice;
    } else {
      const Range range = RangeOf(domain);
      dimension.kind = dimension.count > 0 ? Kind::kSteps : Kind::kRange;
      const double end = dimension.count > 0
                             ? range.min + static_cast<double>(dimension.count) * range.step
                             : std::get<FloatDomain>(domain).max;
      dimension.log = IsLog(domain) && Log(end) - Log(range.min) > kNarrow;
      dimension.low = dimension.log ? Log(range.min) : range.min;
      dimension.high = dimension.log ? Log(end) : end;
    }
    const auto signature = Signature(parameter);
    const auto known = std::ranges::find(signatures, signature);
    dimension.group = static_cast<size_t>(known - signatures.begin());
    if (known == signatures.end()) signatures.push_back(signature);
    dimensions_.push_back(dimension);
  }
  groups_ = signatures.size();
}

const std::string& Cube::Name(size_t dimension) const {
  return space_.parameters()[dimensions_[dimension].parameter].name;
}

double Cube::CellStart(const Dimension& dimension, int64_t index) const {
  const Range range = RangeOf(space_.parameters()[dimension.parameter].domain);
  const double start = range.min + static_cast<double>(index) * range.step;
  return dimension.log ? Log(start) : start;
}

int64_t Cube::Cell(const Dimension& dimension, double coordinate) const {
  const int64_t last = dimension.count - 1;
  const double u = std::clamp(coordinate, 0.0, 1.0);
  double place = u * static_cast<double>(dimension.count);
  if (dimension.kind == Kind::kSteps && dimension.log) {
    const Range range = RangeOf(space_.parameters()[dimension.parameter].domain);
    place = (Exp(dimension.low + u * (dimension.high - dimension.low)) - range.min) / range.step;
  }
  if (place >= static_cast<double>(last)) return last;
  return std::clamp(static_cast<int64_t>(place), int64_t{0}, last);
}

double Cube::Middle(const Dimension& dimension, int64_t index) const {
  if (dimension.kind == Kind::kChoice) return static_cast<double>(index);
  if (!dimension.log) {
    return (static_cast<double>(index) + 0.5) / static_cast<double>(dimension.count);
  }
  const double middle = (CellStart(dimension, index) + CellStart(dimension, index + 1)) / 2;
  return std::clamp((middle - dimension.low) / (dimension.high - dimension.low), 0.0, 1.0);
}

std::optional<Point> Cube::Place(const Config& config) const {
  Point point(size(), kAbsent);
  size_t taken = 0;
  for (size_t i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[i];
    const Parameter& parameter = space_.parameters()[dimension.parameter];
    const Value* value = config.Find(parameter.name);
    if ((value != nullptr) != space_.IsActive(parameter, config)) return std::nullopt;
    if (value == nullptr) continue;
    ++taken;
    const Result<Value> admitted = Admit(parameter.domain, *value);
    if (!admitted.ok()) return std::nullopt;
    if (dimension.kind == Kind::kChoice) {
      const auto& values = std::get<CategoricalDomain>(parameter.domain).values;
      point[i] = static_cast<double>(std::ranges::find(values, *admitted) - values.begin());
      continue;
    }
    const double number = *AsNumber(*admitted);
    if (dimension.kind == Kind::kSteps) {
      const Range range = RangeOf(parameter.domain);
      const double steps = std::round((number - range.min) / range.step);
      const auto last = static_cast<double>(dimension.count - 1);
      point[i] = Middle(dimension, steps >= last ? dimension.count - 1
                                                 : static_cast<int64_t>(std::max(steps, 0.0)));
      continue;
    }
    const double width = dimension.high - dimension.low;
    const double scaled = (dimension.log ? Log(number) : number) - dimension.low;
    point[i] = width > 0 ? std::clamp(scaled / width, 0.0, 1.0) : 0.5;
  }
  for (const auto& [name, value] : config.entries()) {
    const Parameter* parameter = space_.Find(name);
    if (parameter == nullptr) return std::nullopt;
    const auto* constant = std::get_if<ConstantDomain>(&parameter->domain);
    if (constant == nullptr) continue;
    if (!SameSetting(constant->value, value)) return std::nullopt;
    ++taken;
  }
  if (taken != config.entries().size()) return std::nullopt;
  return point;
}

Value Cube::ToValue(size_t index, double coordinate) const {
  ATTUNE_CHECK(!std::isnan(coordinate));
  const Dimension& dimension = dimensions_[index];
  const Domain& domain = space_.parameters()[dimension.parameter].domain;
  if (dimension.kind == Kind::kChoice) {
    const auto last = static_cast<double>(dimension.count - 1);
    return ValueAt(domain, static_cast<int64_t>(std::clamp(coordinate, 0.0, last)));
  }
  if (dimension.kind == Kind::kSteps) return ValueAt(domain, Cell(dimension, coordinate));
  const auto& range = std::get<FloatDomain>(domain);
  if (coordinate <= 0) return range.min;
  if (coordinate >= 1) return range.max;
  const double scaled = dimension.low + coordinate * (dimension.high - dimension.low);
  return std::clamp(dimension.log ? Exp(scaled) : scaled, range.min, range.max);
}

double Cube::Snap(size_t index, double coordinate) const {
  const Dimension& dimension = dimensions_[index];
  if (dimension.kind != Kind::kSteps) return coordinate;
  return Middle(dimension, Cell(dimension, coordinate));
}

std::pair<double, double> Cube::CellAround(size_t index, double coordinate) const {
  const Dimension& dimension = dimensions_[index];
  if (dimension.kind != Kind::kSteps) return {0, 1};
  const int64_t cell = Cell(dimension, coordinate);
  const auto start = [&](int64_t each) {
    if (!dimension.log) return static_cast<double>(each) / static_cast<double>(dimension.count);
    const double scaled = CellStart(dimension, each) - dimension.low;
    return std::clamp(scaled / (dimension.high - dimension.low), 0.0, 1.0);
  };
  return {start(cell), start(cell + 1)};
}

double Cube::FromUniform(size_t index, double u) const {
  const Dimension& dimension = dimensions_[index];
  if (dimension.kind != Kind::kChoice) return Snap(index, u);
  const auto count = static_cast<double>(dimension.count);
  return std::min(std::floor(u * count), count - 1);
}

bool Cube::IsFinite() const {
  return std::ranges::none_of(dimensions_,
                              [](const Dimension& d) { return d.kind == Kind::kRange; });
}

std::optional<Config> Cube::FindFirst(const std::function<bool(const Config&)>& wanted) const {
  ATTUNE_CHECK(IsFinite());
  const auto search = [&](const auto& self, size_t i,
                          const Config& chosen) -> std::optional<Config> {
    if (i == space_.order().size()) {
      Config config = space_.Resolve(chosen).value();
      if (wanted(config)) return config;
      return std::nullopt;
    }
    const Parameter& parameter = space_.parameters()[space_.order()[i]];
    if (!space_.IsActive(parameter, chosen)) return self(self, i + 1, chosen);
    for (int64_t value = 0; value < *CountValues(parameter.domain); ++value) {
      Config next = chosen;
      next.Set(parameter.name, ValueAt(parameter.domain, value));
      if (auto found = self(self, i + 1, next)) return found;
    }
    return std::nullopt;
  };
  return search(search, 0, {});
}

}  // namespace attune::searchers

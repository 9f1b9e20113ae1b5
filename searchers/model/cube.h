#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/numbers.h"
#include "core/space/search_space.h"

namespace attune::searchers {

// A configuration as numbers, one a dimension of a Cube; NaN where its parameter is absent.
using Point = std::vector<double>;
inline constexpr double kAbsent = kNaN;

// The search space as a unit cube: what models see of it. A dimension is a parameter that is no
// constant, parents before what depends on them.
//
// - A real range without steps is [0, 1], on a log scale in the logarithm.
// - Values in an order (integers, ranges with steps) are cells that fill [0, 1], and the coordinate
//   of a value is the middle of its cell. On a log scale a cell is as wide as random search makes
//   the value likely: the interval up to the next step.
// - Listed values have no order: the coordinate is the place in the list.
//
// A uniform point is therefore what random search draws. At is exact for the middle of every cell;
// of a real range it comes back to a few units in the last place.
class Cube {
 public:
  enum class Kind { kRange, kSteps, kChoice };

  struct Dimension {
    size_t parameter = 0;  // its place in the space's list
    Kind kind = Kind::kRange;
    int64_t count = 0;  // of values; 0 for a range
    bool log = false;
    double low = 0;    // of the scale, a logarithm where `log`; a kChoice has none
    double high = 0;   // its end, beyond the last step
    size_t group = 0;  // dimensions with the same conditions exist together
  };

  explicit Cube(SearchSpace space);

  const SearchSpace& space() const { return space_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  size_t size() const { return dimensions_.size(); }
  size_t groups() const { return groups_; }
  const std::string& Name(size_t dimension) const;

  // The coordinates of a configuration. Nullopt when it is not of this space (of one from before an
  // edit, say): a parameter is missing or too many, or a value lies outside.
  std::optional<Point> Place(const Config& config) const;

  // The value at a coordinate; outside of [0, 1], at its nearest end. REQUIRES: not NaN.
  Value At(size_t dimension, double coordinate) const;

  // The coordinate's nearest middle of a cell, or itself within a range.
  double Snap(size_t dimension, double coordinate) const;

  // Where the coordinate's cell begins and ends, or a range: the whole of it.
  std::pair<double, double> CellAround(size_t dimension, double coordinate) const;

  // The coordinate of u from [0, 1), so that a uniform u gives what random search draws.
  double FromUniform(size_t dimension, double u) const;

  // The configuration that takes coordinates from `coordinate(dimension)`, asked parents first and
  // only for parameters that exist beside what was taken already.
  template <class Coordinate>
  Config Build(Coordinate coordinate) const {
    Config config;
    size_t next = 0;
    for (const size_t place : space_.order()) {
      const Parameter& parameter = space_.parameters()[place];
      const bool constant = std::holds_alternative<ConstantDomain>(parameter.domain);
      const size_t dimension = constant ? 0 : next++;
      if (!space_.IsActive(parameter, config)) continue;
      config.Set(parameter.name, constant ? std::get<ConstantDomain>(parameter.domain).value
                                          : At(dimension, coordinate(dimension)));
    }
    return space_.Resolve(config).value();
  }

  // Whether there are only so many configurations: no range without steps.
  bool IsFinite() const;

  // The first configuration, in the order of nested loops, that `wanted` says yes to; nullopt when
  // it says yes to none. Costs as many calls as it takes. REQUIRES: Finite().
  std::optional<Config> FindFirst(const std::function<bool(const Config&)>& wanted) const;

 private:
  // The scale at the lower end of a cell. REQUIRES: kSteps.
  double CellStart(const Dimension& dimension, int64_t index) const;
  int64_t Cell(const Dimension& dimension, double coordinate) const;
  double Middle(const Dimension& dimension, int64_t index) const;

  SearchSpace space_;
  std::vector<Dimension> dimensions_;
  size_t groups_ = 0;
};

}  // namespace attune::searchers

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

// The coordinates of a configuration, one per dimension of a Cube; NaN for an absent parameter.
using Point = std::vector<double>;
inline constexpr double kAbsent = kNaN;

// The search space as a unit cube, for models. Each parameter that is not constant is a dimension,
// with parents before the parameters that depend on them.
//
// - A real range without steps is mapped to [0, 1]; on a log scale, by its logarithm.
// - For integers and ranges with steps, each value has a cell, and the cells fill [0, 1]. The
//   coordinate of a value is the middle of its cell. The width of a cell is the probability of the
//   value in random search. On a log scale this is the interval up to the next step.
// - Listed values have no order. The coordinate is the index in the list.
//
// So uniform points have the distribution of random search. For steps, ToValue(Place(config)) is
// exact. For a real range it differs by a few units in the last place at most.
class Cube {
 public:
  enum class Kind { kRange, kSteps, kChoice };

  struct Dimension {
    size_t parameter = 0;  // index in the parameters of the space
    Kind kind = Kind::kRange;
    int64_t count = 0;  // number of values; 0 for a range
    bool log = false;
    double low = 0;    // begin of the scale, as a logarithm if `log`; unused for kChoice
    double high = 0;   // end of the scale; for steps, one step after the last value
    size_t group = 0;  // dimensions with the same conditions have the same group
  };

  explicit Cube(SearchSpace space);

  const SearchSpace& space() const { return space_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  size_t size() const { return dimensions_.size(); }
  size_t groups() const { return groups_; }
  const std::string& Name(size_t dimension) const;

  // The coordinates of a configuration. Nullopt if it is not in this space, for example after an
  // edit: a parameter is missing or unknown, or a value is out of range.
  std::optional<Point> Place(const Config& config) const;

  // The value at a coordinate, clamped to [0, 1]. REQUIRES: the coordinate is not NaN.
  Value ToValue(size_t dimension, double coordinate) const;

  // The middle of the coordinate's cell; for a range or a list, the coordinate itself.
  double Snap(size_t dimension, double coordinate) const;

  // The begin and the end of the coordinate's cell; for a range or a list, 0 and 1.
  std::pair<double, double> CellAround(size_t dimension, double coordinate) const;

  // Maps a uniform number from [0, 1) to a coordinate with the distribution of random search.
  double FromUniform(size_t dimension, double u) const;

  // Builds a configuration from `coordinate(dimension)`. It is called for parents first, and only
  // for parameters that exist for the values so far.
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
                                          : ToValue(dimension, coordinate(dimension)));
    }
    return space_.Resolve(config).value();
  }

  // Whether the number of configurations is finite: no range is without steps.
  bool IsFinite() const;

  // The first configuration, in the order of nested loops, for which `wanted` returns true; nullopt
  // if there is none. May call `wanted` for each configuration. REQUIRES: IsFinite().
  std::optional<Config> FindFirst(const std::function<bool(const Config&)>& wanted) const;

 private:
  // The begin of a cell on the scale. REQUIRES: kSteps.
  double CellStart(const Dimension& dimension, int64_t index) const;
  int64_t Cell(const Dimension& dimension, double coordinate) const;
  double Middle(const Dimension& dimension, int64_t index) const;

  SearchSpace space_;
  std::vector<Dimension> dimensions_;
  size_t groups_ = 0;
};

}  // namespace attune::searchers

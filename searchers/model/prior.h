#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/log/suggestion.h"
#include "core/log/warm_start.h"
#include "searchers/model/cube.h"
#include "searchers/model/parzen.h"

namespace attune::searchers {

class Record;

// The density of the good results of earlier sweeps: the best fifth of each, at most 25 in total. A
// sweep relies on it less the more results it has itself.
//
// A density separate from the model assumes nothing about the values of two sweeps, and the model
// soon outvotes a wrong one (priors over the optimum: Souza et al., "Bayesian Optimization with a
// Prior for the Optimum", ECML 2021; Hvarfner et al., "πBO: Augmenting Acquisition Functions with
// User Beliefs for Bayesian Optimization", ICLR 2022).
class Prior {
 public:
  Prior() = default;
  explicit Prior(const Record& record);

  bool empty() const { return best_.empty(); }

  // The best result of each earlier sweep, in the order of the sweeps; tried before anything else.
  // With several metrics it is the first one of the front. Repeating more of the front gained
  // nothing (docs/benchmarks.md).
  const std::vector<PriorResult>& best() const { return best_; }

  // The mean of the good results, weighted towards the better ones, and their root mean square
  // distance from it, by dimension. NaN for lists, and if no good result has the dimension.
  struct Middle {
    Point mean;
    Point deviation;
  };
  Middle MiddleOf(const Cube& cube) const;

  // The density of a group of parameters that exist together; null if no good result has them.
  const RankedParzen* DensityOf(size_t group) const {
    return groups_[group].good ? &*groups_[group].good : nullptr;
  }

  // The logarithm of the density at a point, and its derivatives by dimension; 0 for lists.
  double LogDensity(const Point& point) const;
  std::vector<double> Slope(const Point& point) const;

  // Draws several configurations, and returns the one with the largest density.
  Config Draw(const Cube& cube, RandomStream& random) const;

  // The rationales of the proposal best()[proposal], and of a draw.
  Rationale ExplainBest(ProposalNumber proposal) const;
  Rationale ExplainDraw() const;

 private:
  struct Group {
    std::vector<size_t> dimensions;
    std::optional<RankedParzen> good;
  };
  std::string Text() const;  // "62 results of 2 earlier sweeps"
  static bool Has(const Group& group, const Point& point);
  static Point Part(const Group& group, const Point& point);

  std::vector<Group> groups_;
  std::vector<Point> good_;  // the best first
  std::vector<PriorResult> best_;
  size_t results_ = 0;
  bool fronts_ = false;  // there are several metrics
};

}  // namespace attune::searchers

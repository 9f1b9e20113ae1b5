#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/acquisition.h"
#include "searchers/gaussian/process.h"

namespace attune::searchers {

// What no point of a front dominates, below a corner, as boxes that do not overlap. Small is good.
//
// Each side of a box lies between two of the edges of its objective, which ascend from minus
// infinity to the corner's coordinate; `low` and `high` say between which.
struct UndominatedRegion {
  struct Side {
    uint32_t low = 0;
    uint32_t high = 0;
  };
  std::vector<std::vector<double>> edges;  // by objective
  std::vector<Side> boxes;                 // a side an objective, box after box
};

// Slab after slab of the last objective, each cut likewise by the others: n points of m objectives
// give n^(m-1)/(m-1)! boxes or so. Edges that are nearer to each other than 1e-9 are one.
// REQUIRES: `points` has a row a point, all below `corner` in each coordinate.
UndominatedRegion DecomposeUndominated(const Eigen::MatrixXd& points, const Eigen::VectorXd& corner);

// The hypervolume that a point is expected to add to that of the front, where each objective is
// known by a Gaussian process of its own (Emmerich, Giannakoglou and Naujoks, "Single- and
// Multiobjective Evolutionary Optimization Assisted by Gaussian Random Field Metamodels", IEEE
// Transactions on Evolutionary Computation 10, 2006; by boxes as in Yang, Emmerich, Deutz and Bäck,
// "Efficient computation of expected hypervolume improvement using box decomposition algorithms",
// Journal of Global Optimization 75, 2019): objectives being independent, a box [l, u) adds the
// product of E max(u - y, 0) - E max(l - y, 0) over them. It is summed by logarithms, as Ament et
// al. do for one objective, so that it has a gradient where it is next to nothing.
//
// The front is that of the means that the processes expect at the points that they have seen, for
// each guess of what is pending another one. Its corner lies as far beyond its worst values as
// the front extends (where it is one point, as all points do), so that a front is made longer as
// well as better. Of large fronts some points
// that are far from each other are looked at: what lies between them counts for more than it is.
class HypervolumeImprovement final : public Acquisition {
 public:
  static constexpr size_t kMostBoxes = 400;  // about, for each guess

  // REQUIRES: two processes or more, of the same points and with as many guesses.
  explicit HypervolumeImprovement(std::vector<Process> objectives);

  Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const override;
  double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                        Eigen::VectorXd& gradient) const override;
  double Lengthscale(size_t dimension) const override;  // the shortest of all

 private:
  // The logarithm, and its derivatives by the means (a row an objective, a column a guess) and by
  // the variances.
  struct ExpectedImprovement {
    double log = 0;
    Eigen::MatrixXd by_means;
    Eigen::VectorXd by_variances;
  };
  // `means`: as Expected::by_means.
  ExpectedImprovement ComputeImprovement(const Eigen::MatrixXd& means, const Eigen::VectorXd& variances) const;

  std::vector<Process> objectives_;
  std::vector<UndominatedRegion> open_;  // a guess each
};

}  // namespace attune::searchers

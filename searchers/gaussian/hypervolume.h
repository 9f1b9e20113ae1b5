#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/acquisition.h"
#include "searchers/gaussian/process.h"

namespace attune::searchers {

// The region below a corner that no point of a front dominates, as boxes that do not overlap. Small
// values are good.
//
// Each side of a box lies between two edges of its objective. `low` and `high` are their indices.
// The edges ascend from minus infinity to the corner's coordinate.
struct UndominatedRegion {
  struct Side {
    uint32_t low = 0;
    uint32_t high = 0;
  };
  std::vector<std::vector<double>> edges;  // by objective
  std::vector<Side> boxes;                 // one side per objective, box by box
};

// Cuts the region into slabs along the last objective, and each slab along the others. n points
// with m objectives give about n^(m-1)/(m-1)! boxes. Edges closer than 1e-9 are merged. REQUIRES:
// `points` has one row per point, each below `corner` in each coordinate.
UndominatedRegion DecomposeUndominated(const Eigen::MatrixXd& points,
                                       const Eigen::VectorXd& corner);

// The hypervolume that a point is expected to add to the front, with one Gaussian process per
// objective (Emmerich, Giannakoglou and Naujoks, "Single- and Multiobjective Evolutionary
// Optimization Assisted by Gaussian Random Field Metamodels", IEEE Transactions on Evolutionary
// Computation 10, 2006).
//
// It is computed by boxes (Yang, Emmerich, Deutz and Bäck, "Efficient computation of expected
// hypervolume improvement using box decomposition algorithms", Journal of Global Optimization 75,
// 2019). Objectives are independent, so a box [l, u) adds the product over the objectives of
// E max(u - y, 0) - E max(l - y, 0). Logarithms are summed, as by Ament et al. for one objective,
// so the gradient is useful even if the improvement is tiny.
//
// The front consists of the predicted means at the observed points, and there is one front for each
// guess about the pending trials. The corner is beyond the worst values of the front, by the extent
// of the front; if the front is one point, by the extent of all points. So points that make the
// front longer count too. Of a large front, only some points that are far apart are used, which
// overestimates the region between them.
class HypervolumeImprovement final : public Acquisition {
 public:
  static constexpr size_t kMostBoxes = 400;  // approximately, for each guess

  // REQUIRES: at least two processes, with the same points and the same number of guesses.
  explicit HypervolumeImprovement(std::vector<Process> objectives);

  Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const override;
  double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                        Eigen::VectorXd& gradient) const override;
  // The shortest lengthscale of the processes.
  double Lengthscale(size_t dimension) const override;

 private:
  // The logarithm, and its derivatives by the means and by the variances. `by_means` has one row
  // per objective and one column per guess.
  struct ExpectedImprovement {
    double log = 0;
    Eigen::MatrixXd by_means;
    Eigen::VectorXd by_variances;
  };
  // `means` is laid out as ExpectedImprovement::by_means.
  ExpectedImprovement ComputeImprovement(const Eigen::MatrixXd& means,
                                         const Eigen::VectorXd& variances) const;

  std::vector<Process> objectives_;
  std::vector<UndominatedRegion> regions_;  // one per guess
};

}  // namespace attune::searchers

#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

namespace attune::searchers {

// The logarithm of the improvement that is expected at a point. The proposal maximises it.
class Acquisition {
 public:
  virtual ~Acquisition() = default;

  // The logarithms at each row of `at`.
  virtual Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const = 0;

  // The logarithm at one point. `gradient` receives its derivatives by `dimensions`, in their
  // order.
  virtual double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                                Eigen::VectorXd& gradient) const = 0;

  // The distance over which the function varies in a dimension.
  virtual double Lengthscale(size_t dimension) const = 0;
};

}  // namespace attune::searchers

#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

namespace attune::searchers {

// What is expected of trying a point, as a logarithm: the more the better.
class Acquisition {
 public:
  virtual ~Acquisition() = default;

  // At each row.
  virtual Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const = 0;

  // The same at one point, and its derivatives by `dimensions`, in their order.
  virtual double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                                Eigen::VectorXd& gradient) const = 0;

  // Over which a dimension makes a difference.
  virtual double Lengthscale(size_t dimension) const = 0;
};

}  // namespace attune::searchers

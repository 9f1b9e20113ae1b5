#pragma once

#include <functional>

#include <Eigen/Core>

namespace attune::searchers {

// A differentiable function of a vector. It sets the gradient, which has the size of `at`.
using Differentiable = std::function<double(const Eigen::VectorXd& at, Eigen::VectorXd& gradient)>;

// Minimises a function within bounds by L-BFGS-B (Byrd, Lu, Nocedal and Zhu, SIAM Journal on
// Scientific Computing 16, 1995), with a limited number of evaluations. Starts at `at`. Returns the
// least value found, and sets `at` to its point. A value or a gradient that is not finite ends the
// search. REQUIRES: low <= at <= high, evaluations > 0.
double Descend(const Differentiable& function, const Eigen::VectorXd& low,
               const Eigen::VectorXd& high, int evaluations, Eigen::VectorXd& at);

}  // namespace attune::searchers

#pragma once

#include <functional>

#include <Eigen/Core>

namespace attune::searchers {

// A function of some numbers; fills in the gradient, which has their size.
using Differentiable = std::function<double(const Eigen::VectorXd& at, Eigen::VectorXd& gradient)>;

// The least value that L-BFGS-B (Byrd, Lu, Nocedal and Zhu, SIAM Journal on Scientific Computing
// 16, 1995) comes upon between the bounds within so many evaluations, from `at`, which becomes its
// place. Values and gradients that are not finite end the search. REQUIRES: low <= at <= high,
// evaluations > 0.
double Descend(const Differentiable& function, const Eigen::VectorXd& low,
               const Eigen::VectorXd& high, int evaluations, Eigen::VectorXd& at);

}  // namespace attune::searchers

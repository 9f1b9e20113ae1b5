#include "searchers/gaussian/descend.h"

#include <cmath>
#include <exception>
#include <limits>

#include <LBFGSB.h>

namespace attune::searchers {
namespace {

struct EndsEarly : std::exception {};

}  // namespace

double Descend(const Differentiable& function, const Eigen::VectorXd& low,
               const Eigen::VectorXd& high, int evaluations, Eigen::VectorXd& at) {
  double least = std::numeric_limits<double>::infinity();
  Eigen::VectorXd best = at;
  const auto watched = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    if (evaluations-- == 0) throw EndsEarly();
    const double value = function(x, gradient);
    if (!std::isfinite(value) || !gradient.allFinite()) throw EndsEarly();
    if (value < least) least = value, best = x;
    return value;
  };
  LBFGSpp::LBFGSBParam<double> parameters;
  parameters.epsilon = 1e-4;
  parameters.epsilon_rel = 1e-6;
  parameters.delta = 1e-7;
  parameters.max_linesearch = 10;
  LBFGSpp::LBFGSBSolver<double> solver(parameters);
  Eigen::VectorXd x = at;
  double last = 0;
  try {
    solver.minimize(watched, x, last, low, high);
  } catch (const std::exception&) {
    // No more evaluations, or a line search that finds nothing better: the best so far stands.
  }
  at = best;
  return least;
}

}  // namespace attune::searchers

#include "searchers/gaussian/descend.h"

#include <cmath>
#include <exception>
#include <limits>

#include <LBFGSB.h>

namespace attune::searchers {
namespace {

struct EarlyEnd : std::exception {};

}  // namespace

double Descend(const Differentiable& function, const Eigen::VectorXd& low,
               const Eigen::VectorXd& high, int evaluations, Eigen::VectorXd& at) {
  double least = std::numeric_limits<double>::infinity();
  Eigen::VectorXd best = at;
  const auto evaluate = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    if (evaluations-- == 0) throw EarlyEnd();
    const double value = function(x, gradient);
    if (!std::isfinite(value) || !gradient.allFinite()) throw EarlyEnd();
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
    solver.minimize(evaluate, x, last, low, high);
  } catch (const std::exception&) {
    // No evaluations are left, or the line search failed. The best point so far is the result.
  }
  at = best;
  return least;
}

}  // namespace attune::searchers

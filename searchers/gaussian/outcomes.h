#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "searchers/model/record.h"

namespace attune::searchers {

// What became of trials, as numbers with a mean of 0 and a deviation of about 1, small being good.
//
// All are ranked (Record::Better), and each has the normal score of its rank. Completed ones, which
// come first, keep their spacing within the scores that they take up together: a loss y is
// log(1 + (y - best)/(bend · scale)), so that those near the best one are told apart as they are,
// and the very bad ones are not much worse than the bad ones. `scale` is the median's distance to
// the best. How much is bent is a hyperparameter: for Process::Fit, hence the derivatives.
//
// Of several objectives it is one, and the others do not come into it. They are hardly bent: a
// front's volume is one of losses, and not of their logarithms.
class Outcomes {
 public:
  // REQUIRES: not empty, each with something to learn.
  Outcomes(const Record& record, const std::vector<uint32_t>& trials, size_t objective = 0);

  struct Values {
    Eigen::VectorXd values;       // of the trials, in the order given
    Eigen::VectorXd derivatives;  // by the bend
    double log_jacobian = 0;      // of what was done to the losses
    double log_jacobian_derivative = 0;
  };
  Values ValuesFor(double log_bend) const;

 private:
  std::vector<Eigen::Index> places_;  // among those given, the best first, as is all below
  Eigen::VectorXd scores_;
  Eigen::VectorXd excess_;  // of completed ones over the best, in units of `scale`
  double straight_ = 0;
  bool spread_ = false;  // they are not all alike
  double mean_ = 0;      // of the scores that completed ones take up, and their deviation
  double deviation_ = 1;
};

}  // namespace attune::searchers

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "searchers/model/record.h"

namespace attune::searchers {

// The results of trials as numbers for a model, with a mean of 0 and a deviation of about 1. Small
// is good.
//
// Trials are ranked as by Record::Better, and each gets the normal score of its rank. Completed
// trials, which come first, then get transformed losses instead: log(1 + (y - best)/(bend · scale))
// for a loss y, shifted and scaled to the mean and the deviation of their scores. So differences
// near the best loss stay, and very bad losses are not much worse than bad ones. `scale` is the
// distance of the median from the best. The bend is fitted (FitParameters), which needs the
// derivatives.
//
// With several objectives, each has its own outcomes, from its values alone. The bend is then
// large, because the volume of a front is measured in losses and not in their logarithms.
class Outcomes {
 public:
  // REQUIRES: there is a trial, and all have ended with a result (Standing below kRunning).
  Outcomes(const Record& record, const std::vector<uint32_t>& trials, size_t objective = 0);

  struct Values {
    Eigen::VectorXd values;       // by trial, in the order of the constructor
    Eigen::VectorXd derivatives;  // of the values by log_bend
    double log_jacobian = 0;      // of the transformation of the losses
    double log_jacobian_derivative = 0;
  };
  Values ValuesFor(double log_bend) const;

 private:
  std::vector<Eigen::Index> places_;  // indices of the trials, the best first
  Eigen::VectorXd scores_;            // the best first
  Eigen::VectorXd excess_;            // (y - best) / scale of completed trials, the best first
  double bend_min_ = 0;
  bool differ_ = false;   // whether completed trials have different losses
  double mean_ = 0;       // of the scores of completed trials
  double deviation_ = 1;  // of the same scores
};

}  // namespace attune::searchers

#include "searchers/gaussian/outcomes.h"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.h"

namespace attune::searchers {
namespace {

constexpr double kMostExcess = 1e12;  // times the median's: more is as bad

// The quantile of the standard normal distribution at (rank + 1/2)/count.
double Score(double rank, double count) {
  const double part = (rank + 0.5) / count;
  return part <= 0.5 ? -NormalQuantile(part) : NormalQuantile(1 - part);
}

// log(1 + x) without the error of the sum.
double LogOfOneMore(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : Log(sum) * (x / (sum - 1));
}

bool Alike(const Record& record, uint32_t a, uint32_t b) {
  const Trial& one = record.trial(a);
  const Trial& other = record.trial(b);
  if (one.standing != other.standing) return false;
  if (one.standing == Standing::kFailed) return true;
  if (one.standing == Standing::kInfeasible) return one.violation == other.violation;
  return one.value == other.value &&
         (one.standing == Standing::kComplete || one.step == other.step);
}

}  // namespace

Outcomes::Outcomes(const Record& record, const std::vector<uint32_t>& best_first)
    : scores_(static_cast<Eigen::Index>(best_first.size())) {
  const size_t count = best_first.size();
  size_t complete = 0;
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && Alike(record, best_first[begin], best_first[end]);) ++end;
    const double rank = static_cast<double>(begin + end - 1) / 2;
    const double score = Score(rank, static_cast<double>(count));
    for (size_t i = begin; i < end; ++i) scores_[static_cast<Eigen::Index>(i)] = score;
    if (record.trial(best_first[begin]).standing == Standing::kComplete) complete = end;
  }
  if (complete == 0) return;

  // Halves, since the difference of two finite numbers need not be one.
  const double best = record.trial(best_first[0]).value / 2;
  const auto excess = [&](size_t i) { return record.trial(best_first[i]).value / 2 - best; };
  double scale = excess(complete / 2);
  if (!(scale > 0)) scale = excess(complete - 1);
  excess_.setZero(static_cast<Eigen::Index>(complete));
  spread_ = scale > 0;
  if (!spread_) return;
  for (size_t i = 0; i < complete; ++i) {
    excess_[static_cast<Eigen::Index>(i)] = std::min(excess(i) / scale, kMostExcess);
  }
  if (complete == count) return;
  const auto taken = scores_.head(static_cast<Eigen::Index>(complete)).array();
  mean_ = taken.mean();
  deviation_ = std::sqrt((taken - mean_).square().mean());
}

Outcomes::Values Outcomes::Bent(double log_bend) const {
  Values bent{.values = scores_, .derivatives = Eigen::VectorXd::Zero(scores_.size())};
  if (!spread_) return bent;
  const double bend = Exp(log_bend);
  const Eigen::Index n = excess_.size();
  Eigen::ArrayXd value(n);
  Eigen::ArrayXd derivative(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    value[i] = LogOfOneMore(excess_[i] / bend);
    derivative[i] = -excess_[i] / (bend + excess_[i]);
    bent.log_jacobian -= Log(bend + excess_[i]);
    bent.log_jacobian_derivative -= bend / (bend + excess_[i]);
  }
  const auto count = static_cast<double>(n);
  value -= value.mean();
  derivative -= derivative.mean();
  const double deviation = std::sqrt(value.square().mean());
  const double change = (value * derivative).mean() / deviation;  // of the deviation
  value /= deviation;
  bent.values.head(n) = mean_ + deviation_ * value;
  bent.derivatives.head(n) = deviation_ * (derivative - value * change) / deviation;
  bent.log_jacobian -= count * Log(deviation);
  bent.log_jacobian_derivative -= count * change / deviation;
  return bent;
}

}  // namespace attune::searchers

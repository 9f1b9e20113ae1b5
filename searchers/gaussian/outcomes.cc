#include "searchers/gaussian/outcomes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/elementary.h"

namespace attune::searchers {
namespace {

constexpr double kFrontBendMin = 10;  // minimum bend with several objectives
constexpr double kMostExcess = 1e12;  // larger ones count as this

// The quantile of the standard normal distribution at (rank + 1/2)/count.
double Score(double rank, double count) {
  const double share = (rank + 0.5) / count;
  return share <= 0.5 ? -NormalQuantile(share) : NormalQuantile(1 - share);
}

// log(1 + x), without the rounding error of the sum.
double LogOnePlus(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : Log(sum) * (x / (sum - 1));
}

// Compares as Record::Better, but by one objective. Returns -1 if `a` is better, 0 if they are
// equal.
int Compare(const Record& record, size_t objective, uint32_t a, uint32_t b) {
  const auto order = [](auto x, auto y) { return (x > y) - (x < y); };
  const Trial& one = record.trial(a);
  const Trial& other = record.trial(b);
  if (one.standing != other.standing) return order(one.standing, other.standing);
  if (one.standing == Standing::kFailed) return 0;
  if (one.standing == Standing::kInfeasible) return order(one.violation, other.violation);
  if (one.standing == Standing::kCut && one.step != other.step) return order(other.step, one.step);
  return order(record.Result(a, objective), record.Result(b, objective));
}

}  // namespace

Outcomes::Outcomes(const Record& record, const std::vector<uint32_t>& trials, size_t objective)
    : places_(trials.size()),
      scores_(static_cast<Eigen::Index>(trials.size())),
      bend_min_(record.objectives() > 1 ? kFrontBendMin : 0) {
  const size_t count = trials.size();
  std::iota(places_.begin(), places_.end(), 0);
  const auto trial = [&](size_t i) { return trials[static_cast<size_t>(places_[i])]; };
  std::ranges::stable_sort(places_, [&](Eigen::Index a, Eigen::Index b) {
    return Compare(record, objective, trials[static_cast<size_t>(a)],
                   trials[static_cast<size_t>(b)]) < 0;
  });
  size_t complete = 0;
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1;
         end < count && Compare(record, objective, trial(begin), trial(end)) == 0;) {
      ++end;
    }
    const double rank = static_cast<double>(begin + end - 1) / 2;
    const double score = Score(rank, static_cast<double>(count));
    for (size_t i = begin; i < end; ++i) scores_[static_cast<Eigen::Index>(i)] = score;
    if (record.trial(trial(begin)).standing == Standing::kComplete) complete = end;
  }
  if (complete == 0) return;

  // Halved, because the difference of two finite numbers may be infinite.
  const double best = record.Result(trial(0), objective) / 2;
  const auto excess = [&](size_t i) { return record.Result(trial(i), objective) / 2 - best; };
  double scale = excess(complete / 2);
  if (!(scale > 0)) scale = excess(complete - 1);
  excess_.setZero(static_cast<Eigen::Index>(complete));
  differ_ = scale > 0;
  if (!differ_) return;
  for (size_t i = 0; i < complete; ++i) {
    excess_[static_cast<Eigen::Index>(i)] = std::min(excess(i) / scale, kMostExcess);
  }
  if (complete == count) return;
  const auto scores = scores_.head(static_cast<Eigen::Index>(complete)).array();
  mean_ = scores.mean();
  deviation_ = std::sqrt((scores - mean_).square().mean());
}

Outcomes::Values Outcomes::ValuesFor(double log_bend) const {
  Values result{.values = Eigen::VectorXd(scores_.size()),
                .derivatives = Eigen::VectorXd::Zero(scores_.size())};
  result.values(places_) = scores_;
  if (!differ_) return result;
  const double fitted = Exp(log_bend);
  const double bend = fitted + bend_min_;
  const double share = fitted / bend;  // d bend / d log_bend, divided by bend
  const Eigen::Index n = excess_.size();
  Eigen::ArrayXd value(n);
  Eigen::ArrayXd derivative(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    value[i] = LogOnePlus(excess_[i] / bend);
    derivative[i] = -share * excess_[i] / (bend + excess_[i]);
    result.log_jacobian -= Log(bend + excess_[i]);
    result.log_jacobian_derivative -= share * bend / (bend + excess_[i]);
  }
  const auto count = static_cast<double>(n);
  value -= value.mean();
  derivative -= derivative.mean();
  const double deviation = std::sqrt(value.square().mean());
  const double change = (value * derivative).mean() / deviation;  // derivative of the deviation
  value /= deviation;
  const std::vector<Eigen::Index> completed(places_.begin(), places_.begin() + n);
  result.values(completed) = mean_ + deviation_ * value;
  result.derivatives(completed) = deviation_ * (derivative - value * change) / deviation;
  result.log_jacobian -= count * Log(deviation);
  result.log_jacobian_derivative -= count * change / deviation;
  return result;
}

}  // namespace attune::searchers

#include "searchers/gaussian/outcomes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/elementary.h"

namespace attune::searchers {
namespace {

constexpr double kStraight = 10;      // of several objectives; in units of the median's distance
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

// As Record::Better, by one objective; 0: equally good.
int Compare(const Record& record, size_t objective, uint32_t a, uint32_t b) {
  const auto order = [](auto one, auto other) { return (one > other) - (one < other); };
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
      straight_(record.objectives() > 1 ? kStraight : 0) {
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

  // Halves, since the difference of two finite numbers need not be one.
  const double best = record.Result(trial(0), objective) / 2;
  const auto excess = [&](size_t i) { return record.Result(trial(i), objective) / 2 - best; };
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

Outcomes::Values Outcomes::ValuesFor(double log_bend) const {
  Values bent{.values = Eigen::VectorXd(scores_.size()),
              .derivatives = Eigen::VectorXd::Zero(scores_.size())};
  bent.values(places_) = scores_;
  if (!spread_) return bent;
  const double drawn = Exp(log_bend);
  const double bend = drawn + straight_;
  const double part = drawn / bend;  // d bend / d log_bend, over bend
  const Eigen::Index n = excess_.size();
  Eigen::ArrayXd value(n);
  Eigen::ArrayXd derivative(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    value[i] = LogOfOneMore(excess_[i] / bend);
    derivative[i] = -part * excess_[i] / (bend + excess_[i]);
    bent.log_jacobian -= Log(bend + excess_[i]);
    bent.log_jacobian_derivative -= part * bend / (bend + excess_[i]);
  }
  const auto count = static_cast<double>(n);
  value -= value.mean();
  derivative -= derivative.mean();
  const double deviation = std::sqrt(value.square().mean());
  const double change = (value * derivative).mean() / deviation;  // of the deviation
  value /= deviation;
  const std::vector<Eigen::Index> completed(places_.begin(), places_.begin() + n);
  bent.values(completed) = mean_ + deviation_ * value;
  bent.derivatives(completed) = deviation_ * (derivative - value * change) / deviation;
  bent.log_jacobian -= count * Log(deviation);
  bent.log_jacobian_derivative -= count * change / deviation;
  return bent;
}

}  // namespace attune::searchers

#include "searchers/model/adapted_normal.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/base/elementary.h"

namespace attune::searchers {
namespace {

double SquaredLength(const Point& point) {
  double sum = 0;
  for (const double v : point) sum += v * v;
  return sum;
}

// The index at which row `i` of a lower triangle begins.
size_t Row(size_t i) { return i * (i + 1) / 2; }

// The effective sample size of the weights: (Σw)² / Σw².
double EffectiveCount(const std::vector<double>& weights, size_t begin, size_t end) {
  double sum = 0;
  double squares = 0;
  for (size_t i = begin; i < end; ++i) sum += weights[i], squares += weights[i] * weights[i];
  return squares > 0 ? sum * sum / squares : 0;
}

}  // namespace

// Table 1 of the tutorial.
struct AdaptedNormal::Rates {
  double effective = 0;  // μ_eff
  double step_path = 0;  // c_σ
  double damping = 0;    // d_σ
  double path = 0;       // c_c
  double one = 0;        // c_1
  double many = 0;       // c_μ

  Rates(double n, double mu_eff, bool joint) : effective(mu_eff) {
    step_path = (mu_eff + 2) / (n + mu_eff + 5);
    damping = 1 + 2 * std::max(0.0, std::sqrt((mu_eff - 1) / (n + 1)) - 1) + step_path;
    path = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n);
    const double faster = joint ? 1 : (n + 2) / 3;
    one = std::min(1.0, faster * 2 / ((n + 1.3) * (n + 1.3) + mu_eff));
    many = std::min(1 - one,
                    faster * 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((n + 2) * (n + 2) + mu_eff));
  }
};

AdaptedNormal::AdaptedNormal(Point mean, double step, size_t population)
    : mean_(std::move(mean)),
      spread_(mean_.size(), 1),
      step_(step),
      population_(population),
      path_(mean_.size(), 0),
      step_path_(mean_.size(), 0) {
  covariance_.assign(joint() ? Row(size()) : size(), joint() ? 0 : 1);
  for (size_t i = 0; joint() && i < size(); ++i) covariance_[Row(i) + i] = 1;
  ATTUNE_CHECK(Derive());
}

bool AdaptedNormal::Derive() {
  const size_t n = size();
  if (spread_.size() != n || path_.size() != n || step_path_.size() != n ||
      covariance_.size() != (joint() ? Row(n) : n) || population_ < 4 ||
      population_ > (size_t{1} << 30)) {
    return false;
  }
  weights_.clear();
  const auto count = static_cast<double>(population_);
  for (size_t i = 0; i < population_; ++i) {
    weights_.push_back(Log((count + 1) / 2) - Log(static_cast<double>(i + 1)));
  }
  const size_t parents = population_ / 2;
  if (n == 0) return true;
  // Eq. 49 to 53: positive weights add up to 1. Negative ones are limited, so that the covariance
  // stays positive definite.
  const Rates rates(static_cast<double>(n), EffectiveCount(weights_, 0, parents), joint());
  const double bad = EffectiveCount(weights_, parents, population_);
  const double least =
      std::min({1 + rates.one / rates.many, 1 + 2 * bad / (rates.effective + 2),
                (1 - rates.one - rates.many) / (static_cast<double>(n) * rates.many)});
  double positive = 0;
  double negative = 0;
  for (size_t i = 0; i < population_; ++i) (i < parents ? positive : negative) += weights_[i];
  for (size_t i = 0; i < population_; ++i) {
    weights_[i] *= i < parents ? 1 / positive : negative < 0 ? -least / negative : 0;
  }
  return Factorise();
}

bool AdaptedNormal::Factorise() {
  factor_ = covariance_;
  const size_t n = size();
  if (!joint()) {
    for (double& variance : factor_) {
      if (!(variance > 0)) return false;
      variance = std::sqrt(variance);
    }
    return true;
  }
  for (size_t i = 0; i < n; ++i) {
    double* row = factor_.data() + Row(i);
    for (size_t j = 0; j <= i; ++j) {
      const double* other = factor_.data() + Row(j);
      double sum = row[j];
      for (size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      if (j < i) {
        row[j] = sum / other[j];
      } else {
        if (!(sum > 1e-14 * covariance_[Row(i) + i])) return false;
        row[j] = std::sqrt(sum);
      }
    }
  }
  return true;
}

Point AdaptedNormal::ToPoint(const Point& normal) const {
  Point point(size());
  for (size_t i = 0; i < size(); ++i) {
    double y = 0;
    if (joint()) {
      const double* row = factor_.data() + Row(i);
      for (size_t j = 0; j <= i; ++j) y += row[j] * normal[j];
    } else {
      y = factor_[i] * normal[i];
    }
    point[i] = mean_[i] + step_ * spread_[i] * y;
  }
  return point;
}

double AdaptedNormal::Deviation(size_t dimension) const {
  return step_ * std::sqrt(covariance_[joint() ? Row(dimension) + dimension : dimension]);
}

Point AdaptedNormal::Whiten(const Point& y) const {
  Point normal(size());
  for (size_t i = 0; i < size(); ++i) {
    if (!joint()) {
      normal[i] = y[i] / factor_[i];
      continue;
    }
    const double* row = factor_.data() + Row(i);
    double sum = y[i];
    for (size_t j = 0; j < i; ++j) sum -= row[j] * normal[j];
    normal[i] = sum / row[i];
  }
  return normal;
}

bool AdaptedNormal::Learn(const std::vector<Sample>& best_first) {
  ATTUNE_CHECK(best_first.size() == population_);
  const size_t count = size();
  const auto n = static_cast<double>(count);
  const size_t parents = population_ / 2;
  const Rates rates(n, EffectiveCount(weights_, 0, parents), joint());

  std::vector<Point> steps;       // the y of each sample
  std::vector<double> distances;  // squared Mahalanobis distances from the mean
  Point mean_step(count, 0);
  for (size_t i = 0; i < population_; ++i) {
    Point y(count);
    for (size_t j = 0; j < count; ++j) {
      y[j] = (best_first[i].point[j] - mean_[j]) / (step_ * spread_[j]);
    }
    double squared = SquaredLength(Whiten(y));
    const double most = std::sqrt(n) + 2 * n / (n + 2);
    if (best_first[i].injected && squared > most * most) {
      for (double& v : y) v *= most / std::sqrt(squared);
      squared = most * most;
    }
    for (size_t j = 0; i < parents && j < count; ++j) mean_step[j] += weights_[i] * y[j];
    steps.push_back(std::move(y));
    distances.push_back(squared);
  }
  for (size_t j = 0; j < count; ++j) mean_[j] += step_ * spread_[j] * mean_step[j];

  // The step, eq. 43 and 44.
  const Point white = Whiten(mean_step);
  const double kept = 1 - rates.step_path;
  const double added = std::sqrt(rates.step_path * (2 - rates.step_path) * rates.effective);
  for (size_t j = 0; j < count; ++j) step_path_[j] = kept * step_path_[j] + added * white[j];
  fading_ *= kept * kept;
  const double expected = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  const double length = std::sqrt(SquaredLength(step_path_));
  const double change = rates.step_path / rates.damping * (length / expected - 1);
  step_ *= Exp(std::min(1.0, change));

  // The covariance, eq. 45 to 47.
  const bool moves = length / std::sqrt(1 - fading_) < (1.4 + 2 / (n + 1)) * expected;
  const double path_added = moves ? std::sqrt(rates.path * (2 - rates.path) * rates.effective) : 0;
  for (size_t j = 0; j < count; ++j) {
    path_[j] = (1 - rates.path) * path_[j] + path_added * mean_step[j];
  }
  double total = 0;
  for (const double weight : weights_) total += weight;
  const double lost = moves ? 0 : rates.one * rates.path * (2 - rates.path);
  const double old = 1 + lost - rates.one - rates.many * total;
  for (double& entry : covariance_) entry *= old;
  const auto add = [&](double weight, const Point& y) {
    for (size_t i = 0; i < count; ++i) {
      const double scaled = weight * y[i];
      if (!joint()) {
        covariance_[i] += scaled * y[i];
        continue;
      }
      double* row = covariance_.data() + Row(i);
      for (size_t j = 0; j <= i; ++j) row[j] += scaled * y[j];
    }
  };
  add(rates.one, path_);
  for (size_t i = 0; i < population_; ++i) {
    const double shortened = weights_[i] >= 0 ? 1 : n / std::max(distances[i], 1e-300);
    if (distances[i] > 0) add(rates.many * weights_[i] * shortened, steps[i]);
  }
  return step_ > 1e-200 && step_ < 1e200 && Factorise();
}

void AdaptedNormal::RestoreDimension(size_t dimension, const AdaptedNormal& before) {
  mean_[dimension] = before.mean_[dimension];
  spread_[dimension] =
      before.spread_[dimension] * before.Deviation(dimension) / Deviation(dimension);
}

void AdaptedNormal::KeepMargin(size_t dimension, std::pair<double, double> cell, double margin) {
  const auto [low, high] = cell;
  const bool first = low <= 0;
  const bool last = high >= 1;
  const double width = high - low;
  if ((first && last) || width < 1e-9) return;  // the only cell, or practically a continuous range
  double& mean = mean_[dimension];
  double& spread = spread_[dimension];
  const double deviation = Deviation(dimension) * spread;
  if (!(deviation > 0)) return;
  if (first || last) {
    // Moves the mean towards the only neighbouring side.
    const double most = NormalQuantile(margin) * deviation;
    mean = first ? std::max(mean, high - most) : std::min(mean, low + most);
    return;
  }
  const double below = NormalCdf((low - mean) / deviation);
  const double above = NormalCdf((mean - high) / deviation);
  if (below >= margin / 2 && above >= margin / 2) return;
  const double wider_below = std::max(below, margin / 2);
  const double wider_above = std::max(above, margin / 2);
  const double inside = 1 - below - above;
  const double excess = (1 - wider_below - wider_above - inside) /
                        (wider_below + wider_above + inside - 1.5 * margin);
  const double z_below =
      NormalQuantile(std::min(0.5, wider_below + excess * (wider_below - margin / 2)));
  const double z_above =
      NormalQuantile(std::min(0.5, wider_above + excess * (wider_above - margin / 2)));
  if (!(z_below + z_above > 0)) return;
  mean = (low * z_above + high * z_below) / (z_below + z_above);
  spread *= width / (z_below + z_above) / deviation;
}

void AdaptedNormal::LimitDeviation(double most) {
  double widest = 0;
  for (size_t i = 0; i < size(); ++i) widest = std::max(widest, Deviation(i));
  if (widest > most) step_ *= most / widest;
}

}  // namespace attune::searchers

#include "schedulers/extrapolation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "core/base/elementary.h"
#include "schedulers/quantile.h"

namespace attune::schedulers {
namespace {

// Tuned on recorded curves. The figures in docs/benchmarks.md use different curves.
constexpr double kRidge = 10;           // as a share of a term's mean square
constexpr double kTermMin = 1e-3;       // a term's root mean square
constexpr double kFallAtFirst = 0.15;   // without curves: the share that falls after the first rung
constexpr double kFallLater = 0.05;     // after another rung
constexpr double kFallAgain = 0.5;      // the share of the last fall that repeats
constexpr double kDeviation = 0.2;      // prior of a step's deviation
constexpr double kDeviationCount = 10;  // weight of that prior, in observations
constexpr double kFitEvery = 0.1;       // new records, as a share of the trials
constexpr double kFitAtFall = 0.05;     // fall of the best of all, in units
constexpr double kUnitQuantile = 0.25;
constexpr double kCeilingQuantile = 0.8;
constexpr double kUnitsMax = 1e6;  // above the best of all
constexpr double kUnitMin = 1e-12;

using std::isfinite;

// Solves a·x = b by Cholesky decomposition. REQUIRES: a is symmetric and positive definite.
template <size_t N>
std::array<double, N> Solve(std::array<std::array<double, N>, N> a, std::array<double, N> b) {
  for (size_t i = 0; i < N; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(a[i][i]) : a[i][j] / a[j][j];
    }
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = N; i-- > 0;) {
    for (size_t k = i + 1; k < N; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// The weights of a rule without curves.
std::array<double, 4> Prior(size_t rung) {
  return {0, rung == 0 ? kFallAtFirst : kFallLater, kFallAgain, 0};
}

template <size_t N>
double Product(const std::array<double, N>& a, const std::array<double, N>& b) {
  double sum = 0;
  for (size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void Extrapolation::Reset(size_t rungs) {
  ATTUNE_CHECK(rungs >= 2);
  curves_.clear();
  if (rules_.size() + 1 != rungs) {
    rules_.clear();
    for (size_t rung = 0; rung + 1 < rungs; ++rung) {
      rules_.push_back({.weights = Prior(rung), .variance = kDeviation * kDeviation});
    }
  }
  rungs_ = rungs;
}

bool Extrapolation::Observe(Arrival& report) {
  ObserveCost(report.trial, report.cost);
  if (report.rung) {
    report.best_cost = BestOf(report.trial);
    Record(report.trial, *report.rung, report.cost, report.best_cost);
  }
  if (!IsFitDue()) return false;
  Fit();
  return true;
}

void Extrapolation::Restart(const std::vector<Step>& rungs, const std::vector<Arrival>& arrivals) {
  Reset(rungs.size());
  for (const Arrival& arrival : arrivals)
    Record(arrival.trial, *arrival.rung, arrival.cost, arrival.best_cost);
}

void Extrapolation::ObserveCost(TrialNumber trial, double cost) {
  if (!isfinite(cost)) return;
  double& best = bests_.try_emplace(trial, cost).first->second;
  best = std::min(best, cost);
  best_ = std::min(best_, cost);
}

double Extrapolation::BestOf(TrialNumber trial) const {
  const auto found = bests_.find(trial);
  return found == bests_.end() ? std::numeric_limits<double>::infinity() : found->second;
}

void Extrapolation::Record(TrialNumber trial, size_t rung, double cost, double best) {
  ATTUNE_CHECK(rung < rungs_);
  Curve& curve = curves_.try_emplace(trial, rungs_).first->second;
  curve[rung] = {.cost = isfinite(cost) ? cost : std::numeric_limits<double>::infinity(),
                 .best = best};
  ++records_since_fit_;
}

bool Extrapolation::IsFitDue() const {
  if (records_since_fit_ == 0) return false;
  if (!isfinite(origin_)) return isfinite(best_);
  const auto trials = static_cast<double>(curves_.size());
  return static_cast<double>(records_since_fit_) >= std::max(1.0, kFitEvery * trials) ||
         best_ < origin_ - kFitAtFall * unit_;
}

// ---- the scale -----------------------------------------------------------------------------

double Extrapolation::ToFitScale(double cost) const {
  if (!isfinite(origin_)) return 0;
  if (cost < origin_) return (cost - origin_) / unit_;
  if (!isfinite(cost)) return ceiling_;
  return std::min(Log(1 + std::min((cost - origin_) / unit_, kUnitsMax)), ceiling_);
}

double Extrapolation::FromFitScale(double scaled) const {
  return origin_ + unit_ * (scaled < 0 ? scaled : Exp(scaled) - 1);
}

void Extrapolation::FitScale() {
  origin_ = best_;
  std::vector<double> bests;
  for (const auto& [trial, best] : bests_) bests.push_back(best);
  unit_ = std::max(
      {Quantile(std::move(bests), kUnitQuantile) - origin_, 1e-9 * std::abs(origin_), kUnitMin});
  ceiling_ = std::numeric_limits<double>::max();
  std::vector<double> first;
  for (const auto& [trial, curve] : curves_) {
    if (isfinite(curve[0].best)) first.push_back(ToFitScale(curve[0].best));
  }
  ceiling_ = first.empty() ? Log(1 + kUnitsMax) : Quantile(std::move(first), kCeilingQuantile) + 1;
}

// ---- the fit -------------------------------------------------------------------------------

Extrapolation::Terms Extrapolation::TermsOf(const Curve& curve, size_t rung) const {
  const double best = ToFitScale(curve[rung].best);
  const bool skipped = rung == 0 || std::isnan(curve[rung - 1].best);
  return {1, best, skipped ? 0 : ToFitScale(curve[rung - 1].best) - best,
          ToFitScale(curve[rung].cost) - best};
}

double Extrapolation::PredictedEnd(const Curve& curve, size_t rung) const {
  const double best = ToFitScale(curve[rung].best);
  if (rung + 1 == rungs_) return best;
  return best - std::max(0.0, Product(TermsOf(curve, rung), rules_[rung].weights));
}

void Extrapolation::Fit() {
  records_since_fit_ = 0;
  if (!isfinite(best_)) return;
  FitScale();
  for (size_t rung = rungs_ - 1; rung-- > 0;) FitRung(rung);
}

void Extrapolation::FitRung(size_t rung) {
  const Terms prior = Prior(rung);
  std::array<Terms, kTerms> squares{};
  Terms sums{};
  std::vector<std::pair<Terms, double>> rows;  // terms, and the fall without the prior's share
  for (const auto& [trial, curve] : curves_) {
    if (std::isnan(curve[rung].best) || std::isnan(curve[rung + 1].best)) continue;
    const Terms terms = TermsOf(curve, rung);
    const double fall = ToFitScale(curve[rung].best) - PredictedEnd(curve, rung + 1);
    rows.emplace_back(terms, fall - Product(terms, prior));
    for (size_t i = 0; i < kTerms; ++i) {
      sums[i] += terms[i] * rows.back().second;
      for (size_t j = 0; j < kTerms; ++j) squares[i][j] += terms[i] * terms[j];
    }
  }
  const auto count = static_cast<double>(rows.size());
  for (size_t i = 0; i < kTerms; ++i) {
    const double mean_square = rows.empty() ? 0 : squares[i][i] / count;
    squares[i][i] += kRidge * std::max(mean_square, kTermMin * kTermMin);
  }
  const Terms change = Solve(squares, sums);
  double residues = kDeviationCount * kDeviation * kDeviation;
  for (const auto& [terms, left] : rows) {
    const double residue = left - Product(terms, change);
    residues += residue * residue;
  }
  for (size_t i = 0; i < kTerms; ++i) rules_[rung].weights[i] = prior[i] + change[i];
  rules_[rung].variance = residues / (count + kDeviationCount);
}

// ---- forecasts -----------------------------------------------------------------------------

Extrapolation::Score Extrapolation::Forecast(const Curve& curve, size_t rung) const {
  if (rung + 1 == rungs_ || !isfinite(curve[rung].best)) return {.cost = curve[rung].best};
  if (!isfinite(origin_)) return {.cost = curve[rung].best, .spread = 0};
  const double expected = PredictedEnd(curve, rung);
  double variance = 0;
  for (size_t step = rung; step + 1 < rungs_; ++step) variance += rules_[step].variance;
  return {.cost = FromFitScale(expected),
          .spread = unit_ * Exp(std::max(expected, 0.0)) * std::sqrt(variance)};
}

Extrapolation::Score Extrapolation::ScoreOf(TrialNumber trial, size_t rung, double cost) const {
  if (!isfinite(cost)) return {cost};
  const auto found = curves_.find(trial);
  Curve curve = found == curves_.end() ? Curve(rungs_) : found->second;
  const bool is_recorded = !std::isnan(curve[rung].cost);
  if (!is_recorded) curve[rung] = {.cost = cost, .best = std::min(BestOf(trial), cost)};
  return Forecast(curve, rung);
}

void Extrapolation::Save(ArchiveWriter& archive) const {
  archive(bests_, best_, records_since_fit_, origin_, unit_, ceiling_, rules_);
}

void Extrapolation::Load(ArchiveReader& archive) {
  archive(bests_, best_, records_since_fit_, origin_, unit_, ceiling_, rules_);
  if (rules_.size() + 1 == rungs_) return;
  Reset(rungs_);
  archive.Fail();
}

std::string SpreadText(double spread) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), spread,
                                 std::chars_format::general, /*precision=*/2);
  return {digits.data(), end.ptr};
}

}  // namespace attune::schedulers

#include "schedulers/bandit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/elementary.h"
#include "core/base/random.h"
#include "core/space/domain.h"
#include "core/space/draw.h"

namespace attune::schedulers {
namespace {

constexpr std::array kLengthscales{0.15, 0.3, 0.6, 1.2};  // of ranges that are 1
constexpr std::array kEpsilons{0.0, 0.1, 0.4};            // ε
constexpr std::array kNoises{0.02, 0.3};                  // of gains whose variance is 1
constexpr double kJitter = 1e-9;

// The confidence bound lies √(kFirst + ln(kSecond · n)) deviations above the mean.
constexpr double kFirst = 0.2;
constexpr double kSecond = 0.4;

bool IsNumeric(const Parameter& parameter) {
  return std::holds_alternative<FloatDomain>(parameter.domain) ||
         std::holds_alternative<IntDomain>(parameter.domain);
}

// The place of a number in its range, from 0 to 1; the middle if there is none.
template <class Range>
double Place(const Range& range, const Value* value) {
  const std::optional<double> number = value != nullptr ? AsNumber(*value) : std::nullopt;
  if (!number || range.min == range.max) return 0.5;
  const auto on_scale = [&](double x) { return range.scale == Scale::kLog ? Log(x) : x; };
  const double low = on_scale(static_cast<double>(range.min));
  const double high = on_scale(static_cast<double>(range.max));
  const double at = on_scale(std::max(*number, static_cast<double>(range.min)));
  return std::clamp((at - low) / (high - low), 0.0, 1.0);
}

struct Point {
  std::vector<double> at;  // the numeric parameters, then the value before
  double interval = 0;
};

struct Kernel {
  double narrow = 0;  // 1 / (2 · lengthscale²)
  double fade = 0;    // ln(1 - ε) / 2
  double noise = 0;

  double operator()(const Point& a, const Point& b) const {
    double squares = 0;
    for (size_t i = 0; i < a.at.size(); ++i) squares += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
    return Exp(fade * std::abs(a.interval - b.interval) - narrow * squares);
  }
};

// The covariance of some points with noise, as the lower triangle L of its Cholesky factors.
class Factor {
 public:
  Factor(const std::vector<Point>& points, const Kernel& kernel) {
    for (size_t i = 0; i < points.size(); ++i) {
      std::vector<double> row(i + 1);
      for (size_t j = 0; j < i; ++j) row[j] = kernel(points[i], points[j]);
      row[i] = 1 + kernel.noise + kJitter;
      for (size_t j = 0; j <= i; ++j) {
        double rest = row[j];
        const std::vector<double>& other = j < i ? rows_[j] : row;
        for (size_t k = 0; k < j; ++k) rest -= row[k] * other[k];
        row[j] = j < i ? rest / other[j] : std::sqrt(std::max(rest, kJitter));
      }
      rows_.push_back(std::move(row));
    }
  }

  // L⁻¹·values.
  std::vector<double> Solve(std::vector<double> values) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (size_t k = 0; k < i; ++k) values[i] -= rows_[i][k] * values[k];
      values[i] /= rows_[i][i];
    }
    return values;
  }

  // (L⁻¹)ᵀ·values.
  std::vector<double> SolveTransposed(std::vector<double> values) const {
    for (size_t i = rows_.size(); i-- > 0;) {
      values[i] /= rows_[i][i];
      for (size_t k = 0; k < i; ++k) values[k] -= rows_[i][k] * values[i];
    }
    return values;
  }

  double LogRootOfDeterminant() const {
    double sum = 0;
    for (size_t i = 0; i < rows_.size(); ++i) sum += Log(rows_[i][i]);
    return sum;
  }

 private:
  std::vector<std::vector<double>> rows_;
};

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A linear transformation to mean 0 and variance 1.
struct Standardisation {
  double mean = 0;
  double deviation = 1;

  explicit Standardisation(const std::vector<double>& values) {
    const auto count = static_cast<double>(values.size());
    for (const double value : values) mean += value / count;
    double variance = 0;
    for (const double value : values) variance += (value - mean) * (value - mean) / count;
    deviation = std::sqrt(variance);
  }
  double Standardise(double value) const { return (value - mean) / deviation; }
};

// The posterior of the gains, with the most likely kernel.
class GainModel {
 public:
  // REQUIRES: the gains differ.
  GainModel(std::vector<Point> points, const std::vector<double>& gains)
      : points_(std::move(points)), standardisation_(gains) {
    std::vector<double> values;
    for (const double gain : gains) values.push_back(standardisation_.Standardise(gain));
    double likeliest = -std::numeric_limits<double>::infinity();
    for (const double lengthscale : kLengthscales) {
      for (const double epsilon : kEpsilons) {
        for (const double noise : kNoises) {
          const Kernel kernel{.narrow = 1 / (2 * lengthscale * lengthscale),
                              .fade = Log(1 - epsilon) / 2,
                              .noise = noise};
          Factor factor(points_, kernel);
          std::vector<double> whitened = factor.Solve(values);
          const double evidence =
              -0.5 * Product(whitened, whitened) - factor.LogRootOfDeterminant();
          if (!(evidence > likeliest)) continue;
          likeliest = evidence;
          kernel_ = kernel;
          weights_ = factor.SolveTransposed(std::move(whitened));
        }
      }
    }
  }

  // Adds the configurations in training: they lower the deviation whatever their gains will be.
  void AddTraining(const std::vector<Point>& training) {
    all_ = points_;
    all_.insert(all_.end(), training.begin(), training.end());
    with_training_ = Factor(all_, kernel_);
  }

  double Mean(const Point& at) const { return Product(Covariances(points_, at), weights_); }
  double Deviation(const Point& at) const {
    const std::vector<double> known = with_training_.Solve(Covariances(all_, at));
    return std::sqrt(std::max(1 - Product(known, known), 0.0));
  }
  const Standardisation& standardisation() const { return standardisation_; }

 private:
  std::vector<double> Covariances(const std::vector<Point>& points, const Point& at) const {
    std::vector<double> covariances;
    for (const Point& point : points) covariances.push_back(kernel_(point, at));
    return covariances;
  }

  std::vector<Point> points_;
  Standardisation standardisation_;
  Kernel kernel_;
  std::vector<double> weights_;  // of the points, in the mean
  std::vector<Point> all_;
  Factor with_training_{{}, {}};
};

// Converts configurations of a space to points.
class PointMaker {
 public:
  PointMaker(const SearchSpace& space, const std::vector<Gain>& gains) : space_(space) {
    std::vector<double> before;
    for (const Gain& gain : gains) before.push_back(gain.before);
    const auto [low, high] = std::ranges::minmax(before);
    low_ = low;
    width_ = high > low ? high - low : 1;
  }

  Point PointOf(const Config& config, int64_t interval, double before) const {
    Point point{.interval = static_cast<double>(interval)};
    for (const Parameter& parameter : space_.parameters()) {
      const Value* value = config.Find(parameter.name);
      if (const auto* reals = std::get_if<FloatDomain>(&parameter.domain))
        point.at.push_back(Place(*reals, value));
      if (const auto* whole = std::get_if<IntDomain>(&parameter.domain))
        point.at.push_back(Place(*whole, value));
    }
    point.at.push_back((before - low_) / width_);
    return point;
  }

 private:
  const SearchSpace& space_;
  double low_ = 0;
  double width_ = 1;
};

// A copy of the base configuration with random numbers.
Config DrawNumbers(const SearchSpace& space, const Config& base, const Exploration& exploration,
                   RandomStream& stream) {
  Config drawn;
  for (const size_t place : space.order()) {
    const Parameter& parameter = space.parameters()[place];
    if (!space.IsActive(parameter, drawn)) continue;
    const bool changes = IsNumeric(parameter) && exploration.MayChange(parameter);
    const Value* kept = changes ? nullptr : base.Find(parameter.name);
    drawn.Set(parameter.name, kept != nullptr ? *kept : Draw(parameter.domain, stream));
  }
  return space.Resolve(drawn).value();
}

}  // namespace

std::optional<Promise> MostPromising(const SearchSpace& space, const Config& base,
                                     const Exploration& exploration, const std::vector<Gain>& gains,
                                     const std::vector<Config>& training, int64_t interval,
                                     double before, uint64_t seed, TrialNumber trial,
                                     int64_t count) {
  const bool numeric = std::ranges::any_of(space.parameters(), [&](const Parameter& parameter) {
    return IsNumeric(parameter) && exploration.MayChange(parameter);
  });
  const auto first = gains.end() - std::min<ptrdiff_t>(std::ssize(gains), kGainsMax);
  const std::vector<Gain> newest(first, gains.end());
  const auto same = [&](const Gain& gain) { return gain.gain == newest.front().gain; };
  if (!numeric || newest.size() < kGainsMin || std::ranges::all_of(newest, same) ||
      !std::isfinite(before))
    return std::nullopt;

  const PointMaker maker(space, newest);
  std::vector<Point> points;
  std::vector<double> values;
  for (const Gain& gain : newest) {
    points.push_back(maker.PointOf(gain.config, gain.interval, gain.before));
    values.push_back(gain.gain);
  }
  GainModel model(std::move(points), values);
  if (!(model.standardisation().deviation > 0) || !std::isfinite(model.standardisation().deviation))
    return std::nullopt;
  std::vector<Point> expected;
  for (const Config& config : training) expected.push_back(maker.PointOf(config, interval, before));
  model.AddTraining(expected);

  const double confidence =
      std::sqrt(kFirst + Log(std::max(kSecond * static_cast<double>(newest.size()), 1.0)));
  RandomStream stream(seed, trial, "pb2/candidates/" + std::to_string(count));
  std::optional<Promise> best;
  double highest = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCandidates; ++i) {
    Config config = DrawNumbers(space, base, exploration, stream);
    const Point at = maker.PointOf(config, interval, before);
    const double mean = model.Mean(at);
    const double deviation = model.Deviation(at);
    if (!(mean + confidence * deviation > highest)) continue;
    highest = mean + confidence * deviation;
    best = Promise{.config = std::move(config),
                   .gain = model.standardisation().mean + mean * model.standardisation().deviation,
                   .deviation = deviation * model.standardisation().deviation,
                   .gains = newest.size()};
  }
  return best;
}

}  // namespace attune::schedulers

#include "searchers/model/parzen.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

constexpr double kGapToWidth = 0.8;
constexpr double kNarrowestMiddle = 0.01;

double UniformOn(const Axis& axis, RandomStream& random) {
  if (axis.kind != Cube::Kind::kChoice) return random.Uniform();
  return UniformPlace(static_cast<double>(axis.count), random);
}

}  // namespace

RankedParzen::RankedParzen(std::vector<Axis> axes, std::vector<Point> best_first)
    : axes_(std::move(axes)) {
  ATTUNE_CHECK(!best_first.empty());
  const auto count = static_cast<double>(best_first.size());
  double sum = 0;
  for (size_t i = 0; i < best_first.size(); ++i) {
    weights_.push_back(Log(count + 0.5) - Log(static_cast<double>(i + 1)));
    sum += weights_.back();
  }
  for (double& weight : weights_) weight *= count / sum;
  total_ = count + kPriorWeight;
  prior_ = Log(kPriorWeight / total_) + LogUniform(axes_);

  for (const double weight : weights_) scales_.push_back(Log(weight / total_));
  scales_.push_back(Log(count / total_));
  widths_.assign(axes_.size(), std::vector<double>(size() + 1, 1));
  lists_.resize(axes_.size());
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    centres_.emplace_back();
    for (const Point& centre : best_first) centres_[axis].push_back(centre[axis]);
    if (axes_[axis].kind != Cube::Kind::kChoice) {
      SetWidths(axis);
      SetMiddle(axis);
    } else {
      centres_[axis].push_back(best_first[0][axis]);
      const auto [same, other] = ListKernelOf(axes_[axis], size());
      lists_[axis] = {Log(same), Log(other)};
    }
  }
}

void RankedParzen::SetKernel(size_t place, size_t axis, double width) {
  const double centre = centres_[axis][place];
  widths_[axis][place] = width;
  scales_[place] -= Log(width * kRootOfTwoPi * NormalMass(-centre / width, (1 - centre) / width));
}

void RankedParzen::SetWidths(size_t axis) {
  // The prior counts as a neighbour, at one half.
  std::vector<std::pair<double, size_t>> sorted{{0.5, size()}};
  for (size_t i = 0; i < size(); ++i) sorted.emplace_back(centres_[axis][i], i);
  std::ranges::sort(sorted);
  const double least =
      std::max(1 / std::min(100.0, static_cast<double>(size()) + 2), MinWidth(axes_[axis]));
  for (size_t place = 0; place < sorted.size(); ++place) {
    const auto [centre, i] = sorted[place];
    if (i == size()) continue;
    const double below = place > 0 ? centre - sorted[place - 1].first : 0;
    const double above = place + 1 < sorted.size() ? sorted[place + 1].first - centre : 0;
    const double width = kGapToWidth * std::max(below, above);
    SetKernel(i, axis, std::clamp(width, std::min(least, 1.0), 1.0));
  }
}

void RankedParzen::SetMiddle(size_t axis) {
  const auto count = static_cast<double>(size());
  double mean = 0;
  for (size_t i = 0; i < size(); ++i) mean += weights_[i] / count * centres_[axis][i];
  double variance = 0;
  for (size_t i = 0; i < size(); ++i) {
    const double deviation = centres_[axis][i] - mean;
    variance += weights_[i] / count * deviation * deviation;
  }
  const double least = std::max(kNarrowestMiddle, MinWidth(axes_[axis]));
  centres_[axis].push_back(std::clamp(mean, 0.0, 1.0));
  SetKernel(size(), axis, std::clamp(std::sqrt(variance), least, 1.0));
}

Point RankedParzen::Draw(RandomStream& random, double middle) const {
  const double points_weight = total_ - kPriorWeight;
  double left = random.Uniform() * (total_ + middle * points_weight);
  size_t chosen = 0;
  while (chosen < size() && left >= weights_[chosen]) left -= weights_[chosen++];
  const bool from_prior = chosen == size() && left >= middle * points_weight;

  Point point(axes_.size());
  for (size_t j = 0; j < axes_.size(); ++j) {
    const double centre = centres_[j][chosen];
    if (from_prior) {
      point[j] = UniformOn(axes_[j], random);
    } else if (axes_[j].kind == Cube::Kind::kChoice) {
      const double kept = 1 / (1 + Spread(size()));
      point[j] = random.Uniform() < kept ? centre : UniformOn(axes_[j], random);
    } else {
      do {  // at least a third of a kernel lies inside, because it is not wider than the cube
        point[j] = centre + widths_[j][chosen] * StandardNormal(random);
      } while (!(point[j] >= 0 && point[j] <= 1));
    }
  }
  return point;
}

std::vector<double> RankedParzen::LogKernels(const Point& point, bool with_middle) const {
  std::vector<double> logs(size() + (with_middle ? 2 : 1), prior_);
  std::copy_n(scales_.begin(), logs.size() - 1, logs.begin() + 1);
  double* kernels = logs.data() + 1;
  const size_t count = logs.size() - 1;
  for (size_t j = 0; j < axes_.size(); ++j) {
    const double at = point[j];
    const double* centres = centres_[j].data();
    if (axes_[j].kind == Cube::Kind::kChoice) {
      const auto [same, other] = lists_[j];
      for (size_t i = 0; i < count; ++i) kernels[i] += centres[i] == at ? same : other;
      continue;
    }
    const double* widths = widths_[j].data();
    for (size_t i = 0; i < count; ++i) {
      const double z = (at - centres[i]) / widths[i];
      kernels[i] -= 0.5 * z * z;
    }
  }
  return logs;
}

std::vector<double> RankedParzen::Slope(const Point& point) const {
  const std::vector<double> logs = LogKernels(point, false);
  const double sum = LogOfSum(logs);
  std::vector<double> slope(axes_.size(), 0);
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) continue;
    for (size_t i = 0; i < size(); ++i) {
      const double width = widths_[j][i];
      slope[j] += Exp(logs[i + 1] - sum) * (centres_[j][i] - point[j]) / (width * width);
    }
  }
  return slope;
}

double RankedParzen::LogDensity(const Point& point, double middle) const {
  std::vector<double> logs = LogKernels(point, middle > 0);
  if (!(middle > 0)) return LogOfSum(logs);
  logs.back() += Log(middle);
  return LogOfSum(logs) - Log(1 + middle * (total_ - kPriorWeight) / total_);
}

}  // namespace attune::searchers

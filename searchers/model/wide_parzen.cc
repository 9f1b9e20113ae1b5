#include "searchers/model/wide_parzen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/base/elementary.h"
#include "searchers/model/kernel_sums.h"
#include "searchers/model/reserve.h"

namespace attune::searchers {
namespace {

constexpr size_t kFirstPart = 256;  // kernels that are evaluated for all points first
constexpr double kSlack = 1e-3;     // bound on the rounding error of a partial sum
constexpr size_t kMassCells = 512;
constexpr float kNoKernel = -1e30F;  // bias of a point without a kernel: its term is 0
constexpr double kNarrowest = 0.01;
constexpr double kScottFactor = 0.1;
constexpr double kPriorWeight = 1;

// Keeps the four highest binary digits of the number.
size_t RoundDown(size_t count) {
  const int rest = std::max(0, static_cast<int>(std::bit_width(count)) - 4);
  return count >> rest << rest;
}

// Tabulates the logarithm of 1 over the mass of a kernel inside the cube, for kernels at multiples
// of 1 / kMassCells.
std::vector<float> BiasTable(double width) {
  std::vector<double> outside(kMassCells + 1, 0);  // mass beyond a face, by the distance from it
  for (size_t i = 0; i <= kMassCells; ++i) {
    outside[i] = NormalCdf(-static_cast<double>(i) / static_cast<double>(kMassCells) / width);
    if (outside[i] < 1e-9) break;
  }
  std::vector<float> table(kMassCells + 1);
  for (size_t i = 0; i <= kMassCells; ++i) {
    table[i] = static_cast<float>(-Log(1 - outside[i] - outside[kMassCells - i]));
  }
  return table;
}

// Interpolates the table at a coordinate.
float BiasFrom(const std::vector<float>& table, float coordinate) {
  const float place = coordinate * static_cast<float>(kMassCells);
  const auto cell = std::min(static_cast<size_t>(place), kMassCells - 1);
  const float fraction = place - static_cast<float>(cell);
  return table[cell] + fraction * (table[cell + 1] - table[cell]);
}

}  // namespace

WideParzen::WideParzen(std::vector<Axis> axes)
    : axes_(std::move(axes)), columns_(axes_.size()), widths_(axes_.size(), 1) {
  UpdateWidths();
}

void WideParzen::Append(const Point& point) {
  if (size_ % kLanes == 0) {
    for (auto& column : columns_) {
      ReserveWithSlack(column, size_ + kLanes);
      column.resize(size_ + kLanes, 0.5F);
    }
    ReserveWithSlack(biases_, size_ + kLanes);
    biases_.resize(size_ + kLanes, kNoKernel);
  }
  for (size_t j = 0; j < axes_.size(); ++j) columns_[j][size_] = static_cast<float>(point[j]);
  is_included_.push_back(false);
  ++size_;
}

void WideParzen::SetIncluded(size_t index, bool included) {
  if (is_included_[index] == included) return;
  is_included_[index] = included;
  included_ += included ? 1 : -1;
  biases_[index] = BiasAt(index);
  if (RoundDown(included_) != width_count_) UpdateWidths();
}

void WideParzen::UpdateWidths() {
  width_count_ = RoundDown(included_);
  const auto count = static_cast<double>(std::max<size_t>(width_count_, 1));
  const double width = kScottFactor * Exp(-Log(count) / (static_cast<double>(axes_.size()) + 4));
  bias_tables_.clear();
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) continue;
    widths_[j] = std::max({width, kNarrowest, MinWidth(axes_[j])});
    bias_tables_.try_emplace(widths_[j]);
  }
  for (auto& [axis_width, table] : bias_tables_) table = BiasTable(axis_width);
  for (size_t i = 0; i < size_; ++i) biases_[i] = BiasAt(i);
}

float WideParzen::BiasAt(size_t index) const {
  if (!is_included_[index]) return kNoKernel;
  float bias = 0;
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) continue;
    bias += BiasFrom(bias_tables_.find(widths_[j])->second, columns_[j][index]);
  }
  return bias / static_cast<float>(std::numbers::ln2);
}

// The parameters of all kernels.
struct WideParzen::Kernels {
  std::vector<ScaledAxis> scaled;
  std::vector<ListedAxis> listed;
  double height = 0;  // logarithm of a kernel's height
  double total = 0;   // total weight
  double prior = 0;   // logarithm of the prior's part of the density

  // The logarithm of the kernels' part of the density. REQUIRES: sum.sum > 0.
  double LogOfKernels(const RunningSum& sum) const {
    return std::numbers::ln2 * static_cast<double>(sum.most) + Log(sum.sum / total) + height;
  }
  double LogDensity(const RunningSum& sum) const {
    return sum.sum > 0 ? LogOfSum(std::array{prior, LogOfKernels(sum)}) : prior;
  }
  // A lower bound of the logarithm of the density, from a partial sum.
  double LogDensityMin(const RunningSum& sum) const {
    return sum.sum > 0 ? std::max(prior, LogOfKernels(sum) - kSlack) : prior;
  }
};

WideParzen::Kernels WideParzen::Prepare() const {
  Kernels kernels;
  for (size_t j = 0; j < axes_.size(); ++j) {
    const float* column = columns_[j].data();
    if (axes_[j].kind == Cube::Kind::kChoice) {
      const auto [same, other] = ListKernelOf(axes_[j], included_);
      kernels.listed.push_back({column, static_cast<float>(Log(same) / std::numbers::ln2),
                                static_cast<float>(Log(other) / std::numbers::ln2), j});
    } else {
      kernels.height -= Log(widths_[j] * kRootOfTwoPi);
      kernels.scaled.push_back(
          {column, static_cast<float>(std::sqrt(0.5 / std::numbers::ln2) / widths_[j]), j});
    }
  }
  kernels.total = static_cast<double>(included_) + kPriorWeight;
  kernels.prior = Log(kPriorWeight / kernels.total) + LogUniform(axes_);
  return kernels;
}

double WideParzen::LogDensity(const Point& point) const {
  const Kernels kernels = Prepare();
  std::array<RunningSum, kTile> sums;
  const size_t index = 0;
  const Tile tile({point}, {&index, 1}, kernels.scaled, kernels.listed);
  tile.Add(biases_.data(), 0, biases_.size(), sums);
  return kernels.LogDensity(sums[0]);
}

// Branch and bound: evaluates the newest kernels for all points first, because the newest trials
// are near the candidates. The points with the largest bounds are then evaluated completely. Most
// other points can be rejected after a part of the kernels.
WideParzen::Difference WideParzen::LargestDifference(const std::vector<Point>& points,
                                                     const std::vector<double>& gains) const {
  const Kernels kernels = Prepare();
  std::vector<RunningSum> sums(points.size());
  const auto tile_of = [&](std::span<const size_t> indices) {
    return Tile(points, indices, kernels.scaled, kernels.listed);
  };
  const auto add = [&](const Tile& tile, std::span<const size_t> indices, size_t begin,
                       size_t end) {
    std::array<RunningSum, kTile> tile_sums;
    for (size_t t = 0; t < indices.size(); ++t) tile_sums[t] = sums[indices[t]];
    tile.Add(biases_.data(), begin, end, tile_sums);
    for (size_t t = 0; t < indices.size(); ++t) sums[indices[t]] = tile_sums[t];
  };
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto for_each_tile = [&](auto body) {
    for (size_t first = 0; first < order.size(); first += kTile) {
      body(std::span(order).subspan(first, std::min(kTile, order.size() - first)));
    }
  };
  const auto upper_bound = [&](size_t index) {
    return gains[index] - kernels.LogDensityMin(sums[index]);
  };

  const size_t all = biases_.size();
  const size_t first_part = std::min(all, std::max(kFirstPart, RoundDown(all / 16)));
  for_each_tile([&](std::span<const size_t> indices) {
    add(tile_of(indices), indices, all - first_part, all);
  });
  if (first_part < all) {
    std::vector<double> bounds(points.size());
    for (const size_t index : order) bounds[index] = upper_bound(index);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return bounds[i]; });
  }
  Difference best{.value = -std::numeric_limits<double>::infinity()};
  for_each_tile([&](std::span<const size_t> indices) {
    const auto is_rejected = [&](size_t index) { return upper_bound(index) < best.value; };
    std::optional<Tile> tile;
    for (size_t added = first_part; added < all; added = std::min(all, 2 * added)) {
      if (std::ranges::all_of(indices, is_rejected)) return;
      if (!tile) tile.emplace(tile_of(indices));
      add(*tile, indices, all - std::min(all, 2 * added), all - added);
    }
    for (const size_t index : indices) {
      const double value = gains[index] - kernels.LogDensity(sums[index]);
      if (value < best.value || (value == best.value && index > best.index)) continue;
      best = {index, value};
    }
  });
  return best;
}

}  // namespace attune::searchers

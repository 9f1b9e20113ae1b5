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

constexpr size_t kFirstLook = 256;  // kernels after which is looked who may still win
constexpr double kSlack = 1e-3;     // more than rounding takes from a sum that grows
constexpr size_t kMassCells = 512;
constexpr float kNoKernel = -1e30F;  // of a place without one: less than any exponent
constexpr double kNarrowest = 0.01;
constexpr double kScottFactor = 0.1;
constexpr double kPriorWeight = 1;

// The number with its four highest binary digits only.
size_t Rounded(size_t count) {
  const int rest = std::max(0, static_cast<int>(std::bit_width(count)) - 4);
  return count >> rest << rest;
}

// The logarithm of 1 over the share of a kernel that lies inside the cube, for kernels at multiples
// of 1 / kMassCells.
std::vector<float> LostMasses(double width) {
  std::vector<double> outside(kMassCells + 1, 0);  // beyond a face, by the distance from it
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

// At `coordinate`, from the table.
float LostMass(const std::vector<float>& table, float coordinate) {
  const float place = coordinate * static_cast<float>(kMassCells);
  const auto cell = std::min(static_cast<size_t>(place), kMassCells - 1);
  const float part = place - static_cast<float>(cell);
  return table[cell] + part * (table[cell + 1] - table[cell]);
}

}  // namespace

WideParzen::WideParzen(std::vector<Axis> axes)
    : axes_(std::move(axes)), columns_(axes_.size()), widths_(axes_.size(), 1) {
  Refresh();
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
  is_in_.push_back(false);
  ++size_;
}

void WideParzen::SetIncluded(size_t place, bool included) {
  if (is_in_[place] == included) return;
  is_in_[place] = included;
  included_ += included ? 1 : -1;
  biases_[place] = BiasAt(place);
  if (Rounded(included_) != width_of_) Refresh();
}

void WideParzen::Refresh() {
  width_of_ = Rounded(included_);
  const auto count = static_cast<double>(std::max<size_t>(width_of_, 1));
  const double width = kScottFactor * Exp(-Log(count) / (static_cast<double>(axes_.size()) + 4));
  lost_.clear();
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) continue;
    widths_[j] = std::max({width, kNarrowest, MinWidth(axes_[j])});
    lost_.try_emplace(widths_[j]);
  }
  for (auto& [of, table] : lost_) table = LostMasses(of);
  for (size_t i = 0; i < size_; ++i) biases_[i] = BiasAt(i);
}

float WideParzen::BiasAt(size_t place) const {
  if (!is_in_[place]) return kNoKernel;
  float bias = 0;
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) continue;
    bias += LostMass(lost_.find(widths_[j])->second, columns_[j][place]);
  }
  return bias / static_cast<float>(std::numbers::ln2);
}

// What the exponents of kernels and the sums of them are made with.
struct WideParzen::Kernels {
  std::vector<ScaledAxis> scaled;
  std::vector<ListedAxis> listed;
  double height = 0;  // of a kernel, as a logarithm
  double total = 0;   // weight
  double prior = 0;   // its part of a density, as a logarithm

  // Of the kernels that have been added. REQUIRES: one of them is near.
  double LogOf(const RunningSum& sum) const {
    return std::numbers::ln2 * static_cast<double>(sum.most) + Log(sum.sum / total) + height;
  }
  double LogDensity(const RunningSum& sum) const {
    return sum.sum > 0 ? LogOfSum(std::array{prior, LogOf(sum)}) : prior;
  }
  // No more than the density will be.
  double LeastLogDensity(const RunningSum& sum) const {
    return sum.sum > 0 ? std::max(prior, LogOf(sum) - kSlack) : prior;
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
  const size_t place = 0;
  const Tile tile({point}, {&place, 1}, kernels.scaled, kernels.listed);
  tile.Add(biases_.data(), 0, biases_.size(), sums);
  return kernels.LogDensity(sums[0]);
}

// The kernels that came last are looked at first, for all points. Where they are dense counts most,
// and the points that then promise most are looked at to the end before the others, of which many
// have no hope any more after a part.
WideParzen::Above WideParzen::LargestDifference(const std::vector<Point>& points,
                                        const std::vector<double>& gains) const {
  const Kernels kernels = Prepare();
  std::vector<RunningSum> sums(points.size());
  const auto tile_of = [&](std::span<const size_t> places) {
    return Tile(points, places, kernels.scaled, kernels.listed);
  };
  const auto add = [&](const Tile& tile, std::span<const size_t> places, size_t begin, size_t end) {
    std::array<RunningSum, kTile> some;
    for (size_t t = 0; t < places.size(); ++t) some[t] = sums[places[t]];
    tile.Add(biases_.data(), begin, end, some);
    for (size_t t = 0; t < places.size(); ++t) sums[places[t]] = some[t];
  };
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto tiles = [&](auto body) {
    for (size_t first = 0; first < order.size(); first += kTile) {
      body(std::span(order).subspan(first, std::min(kTile, order.size() - first)));
    }
  };
  const auto most_of = [&](size_t place) {
    return gains[place] - kernels.LeastLogDensity(sums[place]);
  };

  const size_t all = biases_.size();
  const size_t first_look = std::min(all, std::max(kFirstLook, Rounded(all / 16)));
  tiles(
      [&](std::span<const size_t> places) { add(tile_of(places), places, all - first_look, all); });
  if (first_look < all) {
    std::vector<double> promises(points.size());
    for (const size_t place : order) promises[place] = most_of(place);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return promises[i]; });
  }
  Above best{.difference = -std::numeric_limits<double>::infinity()};
  tiles([&](std::span<const size_t> places) {
    const auto hopeless = [&](size_t place) { return most_of(place) < best.difference; };
    std::optional<Tile> tile;
    for (size_t seen = first_look; seen < all; seen = std::min(all, 2 * seen)) {
      if (std::ranges::all_of(places, hopeless)) return;
      if (!tile) tile.emplace(tile_of(places));
      add(*tile, places, all - std::min(all, 2 * seen), all - seen);
    }
    for (const size_t place : places) {
      const double above = gains[place] - kernels.LogDensity(sums[place]);
      if (above < best.difference || (above == best.difference && place > best.place)) continue;
      best = {place, above};
    }
  });
  return best;
}

}  // namespace attune::searchers

#include "searchers/model/wide_parzen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/base/elementary.h"
#include "searchers/model/room.h"

namespace attune::searchers {
namespace {

// Vectors of the compiler's, because every x86-64 has room for four: each lane is a sum of its own,
// so that the result does not hang on what else a processor can do.
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

constexpr double kLn2 = 0.69314718055994530942;
constexpr size_t kLanes = 4;
constexpr size_t kRow = 2 * kLanes;  // kernels come in
constexpr size_t kTile = 4;
constexpr size_t kBlock = 256;      // kernels whose columns stay in the nearest cache
constexpr size_t kFirstLook = 256;  // kernels after which is looked who may still win
constexpr double kSlack = 1e-3;     // more than rounding takes from a sum that grows
constexpr size_t kMassCells = 512;
constexpr float kNoKernel = -1e30F;  // of a place without one: less than any exponent
constexpr float kNegligible = -46;   // exponents below: a million of them are nothing
constexpr double kNarrowest = 0.01;
constexpr double kScottFactor = 0.1;
constexpr double kPriorWeight = 1;

Float4 All(float value) { return Float4{value, value, value, value}; }

Float4 LoadAt(const float* from) {
  Float4 four;
  __builtin_memcpy(&four, from, sizeof(four));
  return four;
}

// 2 to the power of numbers in [-126, 0], within 1e-7 of it; less counts as -126. The fraction's
// polynomial is the one of its degree that errs least.
Float4 PowerOfTwo(Float4 x) {
  const Float4 least = All(-126);
  x = x > least ? x : least;
  const Int4 k = __builtin_convertvector(x - All(0.5F), Int4);
  const Float4 r = x - __builtin_convertvector(k, Float4);
  Float4 sum = All(1.32764718e-3F);
  for (const float c : {9.67554133e-3F, 5.55071327e-2F, 0.240221197F, 0.693146967F, 1.00000007F}) {
    sum = sum * r + All(c);
  }
  return sum * std::bit_cast<Float4>((k + 127) << 23);
}

bool AnyAbove(Float4 one, Float4 two, float least) {
  const auto halves =
      std::bit_cast<std::array<uint64_t, 2>>((one > All(least)) | (two > All(least)));
  return (halves[0] | halves[1]) != 0;
}

// Sum of powers of two with large and small exponents, as the largest and what the sum is beside
// it.
struct RunningSum {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;

  // REQUIRES: whole vectors, at most a block of them.
  void Add(const float* exponents, size_t count) {
    Float4 highest = All(-std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < count; i += kLanes) {
      const Float4 four = LoadAt(exponents + i);
      highest = four > highest ? four : highest;
    }
    const float top = std::max(std::max(highest[0], highest[1]), std::max(highest[2], highest[3]));
    if (top > most) {
      sum *= Exp(kLn2 * (static_cast<double>(most) - static_cast<double>(top)));
      most = top;
    }
    Float4 lanes = All(0);
    for (size_t i = 0; i < count; i += 2 * kLanes) {
      const Float4 one = LoadAt(exponents + i) - All(most);
      const Float4 two = LoadAt(exponents + i + kLanes) - All(most);
      if (AnyAbove(one, two, kNegligible)) lanes += PowerOfTwo(one) + PowerOfTwo(two);
    }
    sum += (static_cast<double>(lanes[0]) + static_cast<double>(lanes[1])) +
           (static_cast<double>(lanes[2]) + static_cast<double>(lanes[3]));
  }
};

struct Scaled {  // an axis with an order
  const float* column;
  float factor;  // makes a distance the root of what it takes from the exponent
  size_t axis;
};
struct Listed {
  const float* column;
  float same;  // logarithms
  float other;
  size_t axis;
};

using Four = std::array<Float4, kTile>;

// Four points that are held against kernels together, so that a column is read once for them.
class Tile {
 public:
  Tile(const std::vector<Point>& points, std::span<const size_t> places,
       const std::vector<Scaled>& scaled, const std::vector<Listed>& listed)
      : scaled_(scaled), listed_(listed) {
    const auto at = [&](size_t axis, float factor) {
      Four four;
      for (size_t t = 0; t < kTile; ++t) {  // a tile that is not full repeats the last point
        const Point& point = points[places[std::min(t, places.size() - 1)]];
        four[t] = All(static_cast<float>(point[axis]) * factor);
      }
      at_.push_back(four);
    };
    at_.reserve(scaled.size() + listed.size());
    for (const Scaled& axis : scaled) at(axis.axis, axis.factor);
    for (const Listed& axis : listed) at(axis.axis, 1);
  }

  // Adds the kernels of a block, given their biases, to the points' sums. REQUIRES: whole vectors,
  // at most a block of them.
  void Add(const float* biases, size_t begin, size_t end,
           std::array<RunningSum, kTile>& sums) const {
    for (; end - begin > kBlock; end -= kBlock) AddBlock(biases, end - kBlock, end, sums);
    AddBlock(biases, begin, end, sums);
  }

 private:
  void AddBlock(const float* biases, size_t begin, size_t end,
                std::array<RunningSum, kTile>& sums) const {
    alignas(16) std::array<std::array<float, kBlock>, kTile> exponents;
    const Four* at = at_.data();
    const Scaled* scaled = scaled_.data();
    const size_t numbers = scaled_.size();
    for (size_t i = begin; i < end; i += kLanes) {
      Float4 four[kTile];
      for (Float4& each : four) each = LoadAt(biases + i);
      for (size_t j = 0; j < numbers; ++j) {
        const Float4 centre = LoadAt(scaled[j].column + i) * All(scaled[j].factor);
        for (size_t t = 0; t < kTile; ++t) {
          const Float4 z = at[j][t] - centre;
          four[t] -= z * z;
        }
      }
      for (size_t j = 0; j < listed_.size(); ++j) {
        const Listed& list = listed_[j];
        const Float4 own = LoadAt(list.column + i);
        for (size_t t = 0; t < kTile; ++t) {
          four[t] += own == at[numbers + j][t] ? All(list.same) : All(list.other);
        }
      }
      for (size_t t = 0; t < kTile; ++t) {
        __builtin_memcpy(&exponents[t][i - begin], &four[t], sizeof(Float4));
      }
    }
    for (size_t t = 0; t < kTile; ++t) sums[t].Add(exponents[t].data(), end - begin);
  }

  const std::vector<Scaled>& scaled_;
  const std::vector<Listed>& listed_;
  std::vector<Four> at_;  // by axis, those in order first
};

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
  if (size_ % kRow == 0) {
    for (auto& column : columns_) {
      MakeRoom(column, size_ + kRow);
      column.resize(size_ + kRow, 0.5F);
    }
    MakeRoom(biases_, size_ + kRow);
    biases_.resize(size_ + kRow, kNoKernel);
  }
  for (size_t j = 0; j < axes_.size(); ++j) columns_[j][size_] = static_cast<float>(point[j]);
  is_in_.push_back(false);
  ++size_;
}

void WideParzen::Include(size_t place, bool included) {
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
    widths_[j] = std::max({width, kNarrowest, NarrowestIn(axes_[j])});
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
  return bias / static_cast<float>(kLn2);
}

// What the exponents of kernels and the sums of them are made with.
struct WideParzen::Kernels {
  std::vector<Scaled> scaled;
  std::vector<Listed> listed;
  double height = 0;  // of a kernel, as a logarithm
  double total = 0;   // weight
  double prior = 0;   // its part of a density, as a logarithm

  // Of the kernels that have been added. REQUIRES: one of them is near.
  double LogOf(const RunningSum& sum) const {
    return kLn2 * static_cast<double>(sum.most) + Log(sum.sum / total) + height;
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
      kernels.listed.push_back(
          {column, static_cast<float>(Log(same) / kLn2), static_cast<float>(Log(other) / kLn2), j});
    } else {
      kernels.height -= Log(widths_[j] * kRootOfTwoPi);
      kernels.scaled.push_back({column, static_cast<float>(std::sqrt(0.5 / kLn2) / widths_[j]), j});
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
WideParzen::Above WideParzen::MostAbove(const std::vector<Point>& points,
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

#include "searchers/model/parzen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "searchers/model/draw.h"
#include "searchers/model/elementary.h"

namespace attune::searchers {
namespace {

constexpr double kRootOfTwoPi = 2.50662827463100050242;
constexpr double kRootOfHalf = 0.70710678118654752440;
constexpr double kGapToWidth = 0.8;

// What is left for all values of a list beside the point's own: one point's worth among n.
double Spread(size_t points) { return 1 / (static_cast<double>(points) + 1); }

double NarrowestIn(const Axis& axis) {
  return axis.count > 0 ? 0.5 / static_cast<double>(axis.count) : 0;
}

double UniformOn(const Axis& axis, RandomStream& random) {
  if (axis.kind != Cube::Kind::kChoice) return random.Uniform();
  return UniformPlace(static_cast<double>(axis.count), random);
}

// The logarithm of a prior that is uniform in every axis.
double LogUniform(const std::vector<Axis>& axes) {
  double sum = 0;
  for (const Axis& axis : axes) {
    if (axis.kind == Cube::Kind::kChoice) sum -= Log(static_cast<double>(axis.count));
  }
  return sum;
}

double LogOfSum(const std::vector<double>& logs) {
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double log : logs) sum += Exp(log - most);
  return most + Log(sum);
}

// Chances of a list's kernel: its own value, and another one.
struct ListKernel {
  double same;
  double other;
};
ListKernel ListKernelOf(const Axis& axis, size_t points) {
  const double spread = Spread(points);
  const double each = spread / static_cast<double>(axis.count);
  return {(1 + each) / (1 + spread), each / (1 + spread)};
}

}  // namespace

RankedParzen::RankedParzen(std::vector<Axis> axes, std::vector<Point> best_first)
    : axes_(std::move(axes)), centres_(std::move(best_first)) {
  ATTUNE_CHECK(!centres_.empty());
  const auto count = static_cast<double>(centres_.size());
  double sum = 0;
  for (size_t i = 0; i < centres_.size(); ++i) {
    weights_.push_back(Log(count + 0.5) - Log(static_cast<double>(i + 1)));
    sum += weights_.back();
  }
  for (double& weight : weights_) weight *= count / sum;
  total_ = count + kPriorWeight;

  widths_.assign(centres_.size(), Point(axes_.size(), 1));
  for (const double weight : weights_) scales_.push_back(Log(weight / total_));
  lists_.resize(axes_.size());
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis].kind != Cube::Kind::kChoice) {
      SetWidths(axis);
    } else {
      const auto [same, other] = ListKernelOf(axes_[axis], centres_.size());
      lists_[axis] = {Log(same), Log(other)};
    }
  }
}

void RankedParzen::SetWidths(size_t axis) {
  // The prior counts as a neighbour, in the middle.
  std::vector<std::pair<double, size_t>> sorted{{0.5, centres_.size()}};
  for (size_t i = 0; i < centres_.size(); ++i) sorted.emplace_back(centres_[i][axis], i);
  std::ranges::sort(sorted);
  const double least = std::max(1 / std::min(100.0, static_cast<double>(centres_.size()) + 2),
                                NarrowestIn(axes_[axis]));
  for (size_t place = 0; place < sorted.size(); ++place) {
    const auto [centre, i] = sorted[place];
    if (i == centres_.size()) continue;
    const double below = place > 0 ? centre - sorted[place - 1].first : 0;
    const double above = place + 1 < sorted.size() ? sorted[place + 1].first - centre : 0;
    const double width =
        std::clamp(kGapToWidth * std::max(below, above), std::min(least, 1.0), 1.0);
    widths_[i][axis] = width;
    scales_[i] -= Log(width * kRootOfTwoPi * NormalMass(-centre / width, (1 - centre) / width));
  }
}

Point RankedParzen::Draw(RandomStream& random) const {
  double left = random.Uniform() * total_;
  size_t chosen = 0;
  while (chosen < centres_.size() && left >= weights_[chosen]) left -= weights_[chosen++];

  Point point(axes_.size());
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (chosen == centres_.size()) {
      point[j] = UniformOn(axes_[j], random);
    } else if (axes_[j].kind == Cube::Kind::kChoice) {
      const double kept = 1 / (1 + Spread(centres_.size()));
      point[j] = random.Uniform() < kept ? centres_[chosen][j] : UniformOn(axes_[j], random);
    } else {
      do {  // at least a third of a kernel lies inside: its width is at most the cube's
        point[j] = centres_[chosen][j] + widths_[chosen][j] * StandardNormal(random);
      } while (!(point[j] >= 0 && point[j] <= 1));
    }
  }
  return point;
}

double RankedParzen::LogDensity(const Point& point) const {
  std::vector<double> logs{Log(kPriorWeight / total_) + LogUniform(axes_)};
  for (size_t i = 0; i < centres_.size(); ++i) {
    double exponent = scales_[i];
    for (size_t j = 0; j < axes_.size(); ++j) {
      if (axes_[j].kind == Cube::Kind::kChoice) {
        exponent += point[j] == centres_[i][j] ? lists_[j].first : lists_[j].second;
        continue;
      }
      const double z = (point[j] - centres_[i][j]) / widths_[i][j];
      exponent -= 0.5 * z * z;
    }
    logs.push_back(exponent);
  }
  return LogOfSum(logs);
}

// ---- WideParzen: four kernels at a time -------------------------------------------------------

namespace {

// Vectors of the compiler's, because every x86-64 has room for four: each lane is a sum of its own,
// so that the result does not hang on what else a processor can do.
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

constexpr size_t kLanes = 4;
constexpr size_t kTile = 4;
constexpr size_t kBlock = 256;  // kernels whose columns stay in the nearest cache
constexpr size_t kMassCells = 512;
constexpr float kNoKernel = -1e30F;  // of a place without one: less than any exponent
constexpr float kNegligible = -32;   // exponents below: a million of them are nothing
constexpr double kNarrowest = 0.01;
constexpr double kScottFactor = 0.1;
constexpr double kPriorWeight = 1;

Float4 All(float value) { return Float4{value, value, value, value}; }

Float4 LoadAt(const float* from) {
  Float4 four;
  __builtin_memcpy(&four, from, sizeof(four));
  return four;
}

// Exponential of numbers in [-87, 0], to 2 units in the last place; less counts as -87.
Float4 ExpOf(Float4 x) {
  const Float4 least = All(-87.0F);
  x = x < least ? least : x;
  const Int4 k = __builtin_convertvector(x * All(1.44269504F) - All(0.5F), Int4);
  const Float4 multiple = __builtin_convertvector(k, Float4);
  const Float4 r = (x - multiple * All(0.693359375F)) + multiple * All(2.12194440e-4F);
  Float4 sum = All(1.0F / 720);
  for (const float c : {1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) sum = sum * r + All(c);
  return sum * std::bit_cast<Float4>((k + 127) << 23);
}

bool AnyAbove(Float4 four, float least) {
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(four > All(least));
  return (halves[0] | halves[1]) != 0;
}

// Sum of exponentials of large and small numbers, as the largest and what the sum is beside it.
struct RunningSum {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;

  // REQUIRES: whole vectors.
  void Add(const float* exponents, size_t count) {
    Float4 highest = All(-std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < count; i += kLanes) {
      const Float4 four = LoadAt(exponents + i);
      highest = four > highest ? four : highest;
    }
    const float top = std::max(std::max(highest[0], highest[1]), std::max(highest[2], highest[3]));
    if (top > most) {
      sum *= Exp(static_cast<double>(most) - static_cast<double>(top));
      most = top;
    }
    Float4 lanes = All(0);
    for (size_t i = 0; i < count; i += kLanes) {
      const Float4 four = LoadAt(exponents + i) - All(most);
      if (AnyAbove(four, kNegligible)) lanes += ExpOf(four);
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

// Four points that are held against all kernels together, so that a column is read once for them.
class Tile {
 public:
  Tile(const std::vector<Point>& points, size_t first, const std::vector<Scaled>& scaled,
       const std::vector<Listed>& listed)
      : scaled_(scaled), listed_(listed) {
    for (size_t t = 0; t < kTile; ++t) {  // a tile that is not full repeats the last point
      const Point& point = points[std::min(first + t, points.size() - 1)];
      for (const Scaled& axis : scaled) {
        at_[t].push_back(All(static_cast<float>(point[axis.axis]) * axis.factor));
      }
      for (const Listed& axis : listed) at_[t].push_back(All(static_cast<float>(point[axis.axis])));
    }
  }

  // What is in the exponents of `count` kernels, from `begin` on.
  void Exponents(const float* biases, size_t begin, size_t count,
                 std::array<std::array<float, kBlock>, kTile>& exponents) const {
    const Float4* at[kTile];
    for (size_t t = 0; t < kTile; ++t) at[t] = at_[t].data();
    const Scaled* scaled = scaled_.data();
    const size_t numbers = scaled_.size();
    for (size_t i = 0; i < count; i += kLanes) {
      Float4 sums[kTile];
      for (Float4& sum : sums) sum = LoadAt(biases + begin + i);
      for (size_t j = 0; j < numbers; ++j) {
        const Float4 centre = LoadAt(scaled[j].column + begin + i) * All(scaled[j].factor);
        for (size_t t = 0; t < kTile; ++t) {
          const Float4 z = at[t][j] - centre;
          sums[t] -= z * z;
        }
      }
      for (size_t j = 0; j < listed_.size(); ++j) {
        const Listed& list = listed_[j];
        const Float4 own = LoadAt(list.column + begin + i);
        for (size_t t = 0; t < kTile; ++t) {
          sums[t] += own == at[t][numbers + j] ? All(list.same) : All(list.other);
        }
      }
      for (size_t t = 0; t < kTile; ++t)
        __builtin_memcpy(&exponents[t][i], &sums[t], sizeof(Float4));
    }
  }

 private:
  const std::vector<Scaled>& scaled_;
  const std::vector<Listed>& listed_;
  std::array<std::vector<Float4>, kTile> at_;
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
  if (size_ % kLanes == 0) {
    for (auto& column : columns_) column.resize(size_ + kLanes, 0.5F);
    biases_.resize(size_ + kLanes, kNoKernel);
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
  return bias;
}

std::vector<double> WideParzen::LogDensities(const std::vector<Point>& points) const {
  double height = 0;  // of a kernel, as a logarithm
  std::vector<Scaled> scaled;
  std::vector<Listed> listed;
  for (size_t j = 0; j < axes_.size(); ++j) {
    if (axes_[j].kind == Cube::Kind::kChoice) {
      const auto [same, other] = ListKernelOf(axes_[j], included_);
      listed.push_back(
          {columns_[j].data(), static_cast<float>(Log(same)), static_cast<float>(Log(other)), j});
    } else {
      height -= Log(widths_[j] * kRootOfTwoPi);
      scaled.push_back({columns_[j].data(), static_cast<float>(kRootOfHalf / widths_[j]), j});
    }
  }

  std::vector<double> logs;
  const double total = static_cast<double>(included_) + kPriorWeight;
  const double prior = Log(kPriorWeight / total) + LogUniform(axes_);
  for (size_t first = 0; first < points.size(); first += kTile) {
    std::array<RunningSum, kTile> sums;
    const Tile tile(points, first, scaled, listed);
    alignas(16) std::array<std::array<float, kBlock>, kTile> exponents;
    for (size_t begin = 0; begin < biases_.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, biases_.size() - begin);
      tile.Exponents(biases_.data(), begin, count, exponents);
      for (size_t t = 0; t < kTile; ++t) {
        sums[t].Add(exponents[t].data(), count);
      }
    }
    for (size_t t = 0; t < kTile && first + t < points.size(); ++t) {
      if (sums[t].sum <= 0) {
        logs.push_back(prior);
        continue;
      }
      const double kernels = static_cast<double>(sums[t].most) + Log(sums[t].sum / total) + height;
      logs.push_back(LogOfSum({prior, kernels}));
    }
  }
  return logs;
}

}  // namespace attune::searchers

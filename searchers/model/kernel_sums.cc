#include "searchers/model/kernel_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numbers>

#include "core/base/elementary.h"

#define ATTUNE_INLINE [[gnu::always_inline]] inline

namespace attune::searchers {
namespace {

// kLanes numbers in two vectors or in one, as vector extensions of the compiler. Lanes are computed
// independently and are added in a fixed order, so the result does not depend on the processor.
struct FourAndFour {
  using Vector = float __attribute__((vector_size(16)));
  using Whole = int32_t __attribute__((vector_size(16)));
  static constexpr size_t kParts = 2;
  Vector part[kParts];
};
struct Eight {
  using Vector = float __attribute__((vector_size(32)));
  using Whole = int32_t __attribute__((vector_size(32)));
  static constexpr size_t kParts = 1;
  Vector part[kParts];
};
using Four = FourAndFour::Vector;
using Long2 = int64_t __attribute__((vector_size(16)));

constexpr size_t kBlock = 256;      // kernels whose columns fit in the first-level cache
constexpr float kNegligible = -46;  // a million terms with smaller exponents are negligible

// Loads numbers that need not be aligned. The local variable is needed: if the address of `to` were
// taken, the compiler would keep its row in memory.
template <class Row>
ATTUNE_INLINE void Load(const float* numbers, size_t part, typename Row::Vector& to) {
  typename Row::Vector loaded;
  std::memcpy(&loaded, numbers + part * kLanes / Row::kParts, sizeof(loaded));
  to = loaded;
}

ATTUNE_INLINE void Halves(const FourAndFour& row, Four& low, Four& high) {
  low = row.part[0];
  high = row.part[1];
}
ATTUNE_INLINE void Halves(const Eight& row, Four& low, Four& high) {
  low = __builtin_shufflevector(row.part[0], row.part[0], 0, 1, 2, 3);
  high = __builtin_shufflevector(row.part[0], row.part[0], 4, 5, 6, 7);
}

ATTUNE_INLINE bool AnySet(const FourAndFour::Whole& mask) {
  const auto halves = reinterpret_cast<Long2>(mask);
  return (halves[0] | halves[1]) != 0;
}
ATTUNE_INLINE bool AnyAbove(const FourAndFour& row, float number) {
  return AnySet((row.part[0] > number) | (row.part[1] > number));
}
ATTUNE_INLINE bool AnyAbove(const Eight& row, float number) {
  const Eight::Whole mask = row.part[0] > number;
  return AnySet(__builtin_shufflevector(mask, mask, 0, 1, 2, 3) |
                __builtin_shufflevector(mask, mask, 4, 5, 6, 7));
}

// Replaces x by 2^x, with an error of at most 1e-7, for x <= 0. Numbers below -126 count as -126.
// The polynomial for the fraction is the minimax polynomial of its degree.
template <class Row>
ATTUNE_INLINE void RaiseTwo(typename Row::Vector& x) {
  using Vector = typename Row::Vector;
  using Whole = typename Row::Whole;
  const Vector least = Vector{} - 126.0F;
  x = x > least ? x : least;
  const Whole k = __builtin_convertvector(x - 0.5F, Whole);
  const Vector r = x - __builtin_convertvector(k, Vector);
  Vector sum = Vector{} + 1.32764718e-3F;
  for (const float c : {9.67554133e-3F, 5.55071327e-2F, 0.240221197F, 0.693146967F, 1.00000007F}) {
    sum = sum * r + c;
  }
  x = sum * reinterpret_cast<Vector>((k + 127) << 23);
}

// REQUIRES: count > 0.
template <class Row>
ATTUNE_INLINE void AddRows(const Row* rows, size_t count, RunningSum& to) {
  using Vector = typename Row::Vector;
  Row highest = rows[0];
  for (size_t i = 1; i < count; ++i) {
    for (size_t p = 0; p < Row::kParts; ++p) {
      const Vector& part = rows[i].part[p];
      highest.part[p] = part > highest.part[p] ? part : highest.part[p];
    }
  }
  float top = to.most;
  for (const Vector& part : highest.part) {
    for (size_t lane = 0; lane < sizeof(Vector) / sizeof(float); ++lane) {
      top = std::max(top, part[lane]);
    }
  }
  if (top > to.most) {
    to.sum *= Exp(std::numbers::ln2 * (static_cast<double>(to.most) - static_cast<double>(top)));
    to.most = top;
  }
  Four lanes{};
  for (size_t i = 0; i < count; ++i) {
    Row row = rows[i];
    for (Vector& part : row.part) part -= top;
    if (!AnyAbove(row, kNegligible)) continue;
    for (Vector& part : row.part) RaiseTwo<Row>(part);
    Four low, high;
    Halves(row, low, high);
    lanes += low + high;
  }
  to.sum += (static_cast<double>(lanes[0]) + static_cast<double>(lanes[1])) +
            (static_cast<double>(lanes[2]) + static_cast<double>(lanes[3]));
}

}  // namespace

#ifdef __x86_64__
#define ATTUNE_AVX2 __attribute__((target("avx2")))

Width WidestSupported() {
  static const bool eight = __builtin_cpu_supports("avx2") != 0;
  return eight ? Width::kEight : Width::kFour;
}
#else
#define ATTUNE_AVX2

Width WidestSupported() { return Width::kFour; }
#endif

Tile::Tile(const std::vector<Point>& points, std::span<const size_t> indices,
           std::span<const ScaledAxis> scaled, std::span<const ListedAxis> listed)
    : scaled_(scaled), listed_(listed) {
  const auto at = [&](size_t axis, float factor) {
    OnAxis& on_axis = points_.emplace_back();
    for (size_t t = 0; t < kTile; ++t) {  // a tile that is not full repeats the last point
      const Point& point = points[indices[std::min(t, indices.size() - 1)]];
      std::ranges::fill(on_axis.at[t], static_cast<float>(point[axis]) * factor);
    }
  };
  points_.reserve(scaled.size() + listed.size());
  for (const ScaledAxis& axis : scaled) at(axis.axis, axis.factor);
  for (const ListedAxis& axis : listed) at(axis.axis, 1);
}

void Tile::Add(const float* biases, size_t begin, size_t end, std::array<RunningSum, kTile>& sums,
               Width width) const {
  const auto add_block = width == Width::kEight ? &Tile::AddBlockByEight : &Tile::AddBlockByFour;
  while (begin < end) {
    const size_t from = end - std::min(end - begin, kBlock);
    (this->*add_block)(biases, from, end, sums.data());
    end = from;
  }
}

template <class Row>
ATTUNE_INLINE void Tile::AddBlock(const float* biases, size_t begin, size_t end,
                                  RunningSum* sums) const {
  using Vector = typename Row::Vector;
  Row exponents[kTile][kBlock / kLanes];
  for (size_t i = begin; i < end; i += kLanes) {
    Row some[kTile];
    for (size_t p = 0; p < Row::kParts; ++p) {
      for (Row& row : some) Load<Row>(biases + i, p, row.part[p]);
    }
    for (size_t j = 0; j < scaled_.size(); ++j) {
      for (size_t p = 0; p < Row::kParts; ++p) {
        Vector centre;
        Load<Row>(scaled_[j].column + i, p, centre);
        centre *= scaled_[j].factor;
        for (size_t t = 0; t < kTile; ++t) {
          Vector z;
          Load<Row>(points_[j].at[t], p, z);
          z -= centre;
          some[t].part[p] -= z * z;
        }
      }
    }
    for (size_t j = 0; j < listed_.size(); ++j) {
      const Vector same = Vector{} + listed_[j].same;
      const Vector other = Vector{} + listed_[j].other;
      for (size_t p = 0; p < Row::kParts; ++p) {
        Vector column;
        Load<Row>(listed_[j].column + i, p, column);
        for (size_t t = 0; t < kTile; ++t) {
          Vector own;
          Load<Row>(points_[scaled_.size() + j].at[t], p, own);
          some[t].part[p] += column == own ? same : other;
        }
      }
    }
    for (size_t t = 0; t < kTile; ++t) exponents[t][(i - begin) / kLanes] = some[t];
  }
  for (size_t t = 0; t < kTile; ++t) AddRows(exponents[t], (end - begin) / kLanes, sums[t]);
}

void Tile::AddBlockByFour(const float* biases, size_t begin, size_t end, RunningSum* sums) const {
  AddBlock<FourAndFour>(biases, begin, end, sums);
}

ATTUNE_AVX2 void Tile::AddBlockByEight(const float* biases, size_t begin, size_t end,
                                       RunningSum* sums) const {
  AddBlock<Eight>(biases, begin, end, sums);
}

}  // namespace attune::searchers

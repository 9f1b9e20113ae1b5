#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "searchers/model/cube.h"

// Very many kernels held against a few points: what a suggestion of `tpe` costs.
namespace attune::searchers {

inline constexpr size_t kLanes = 8;  // kernels come in so many
inline constexpr size_t kTile = 4;   // points that are held against them together

// A sum of powers of two with large and small exponents, as the largest and what the sum is beside
// it.
struct RunningSum {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;
};

// The kernels' coordinates of an axis with an order.
struct ScaledAxis {
  const float* column;
  float factor;  // makes a distance the root of what it takes from the exponent
  size_t axis;
};

// The same of a list.
struct ListedAxis {
  const float* column;
  float same;  // logarithms
  float other;
  size_t axis;
};

// How many numbers are computed at once. The result is the same, bit for bit.
enum class Width { kFour, kEight };
Width WidestSupported();  // that the processor has room for

// Up to kTile points, so that a column is read once for all of them.
class Tile {
 public:
  // The axes outlive the object. REQUIRES: a place.
  Tile(const std::vector<Point>& points, std::span<const size_t> places,
       std::span<const ScaledAxis> scaled, std::span<const ListedAxis> listed);

  // Adds the kernels from `begin` to `end`, given the exponents that they begin with, to the sums
  // of the points. REQUIRES: whole lanes.
  void Add(const float* biases, size_t begin, size_t end, std::array<RunningSum, kTile>& sums,
           Width width = WidestSupported()) const;

 private:
  struct OnAxis {
    float at[kTile][kLanes];  // in each lane the same
  };
  template <class Row>
  void AddBlock(const float* biases, size_t begin, size_t end, RunningSum* sums) const;
  void AddBlockByFour(const float* biases, size_t begin, size_t end, RunningSum* sums) const;
  void AddBlockByEight(const float* biases, size_t begin, size_t end, RunningSum* sums) const;

  std::span<const ScaledAxis> scaled_;
  std::span<const ListedAxis> listed_;
  std::vector<OnAxis> points_;  // by axis, those with an order first
};

}  // namespace attune::searchers

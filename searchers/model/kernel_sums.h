#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "searchers/model/cube.h"

// Sums of very many kernels at a few points. Most of the time of a tpe suggestion is spent here.
namespace attune::searchers {

inline constexpr size_t kLanes = 8;  // the number of kernels is a multiple of this
inline constexpr size_t kTile = 4;   // points that are evaluated together

// A sum of powers of two that cannot overflow: 2^most · sum, where `most` is the largest exponent.
struct RunningSum {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;
};

// The kernels' coordinates in an axis of numbers.
struct ScaledAxis {
  const float* column;
  float factor;  // the exponent decreases by (factor · distance)²
  size_t axis;
};

// The kernels' coordinates in a list.
struct ListedAxis {
  const float* column;
  float same;   // binary logarithm of the probability of the kernel's value
  float other;  // binary logarithm of the probability of another value
  size_t axis;
};

// The number of floats that one instruction computes. The results are the same, bit for bit.
enum class Width { kFour, kEight };
// The larger width that the processor supports.
Width WidestSupported();

// Up to kTile points that are evaluated together, so that each column is read only once.
class Tile {
 public:
  // The axes must outlive the object. REQUIRES: at least one index.
  Tile(const std::vector<Point>& points, std::span<const size_t> indices,
       std::span<const ScaledAxis> scaled, std::span<const ListedAxis> listed);

  // Adds the kernels from `begin` to `end` to the sums of the points. `biases` are added to the
  // exponents. REQUIRES: begin and end are multiples of kLanes.
  void Add(const float* biases, size_t begin, size_t end, std::array<RunningSum, kTile>& sums,
           Width width = WidestSupported()) const;

 private:
  struct OnAxis {
    float at[kTile][kLanes];  // the coordinate of a point, repeated in each lane
  };
  template <class Row>
  void AddBlock(const float* biases, size_t begin, size_t end, RunningSum* sums) const;
  void AddBlockByFour(const float* biases, size_t begin, size_t end, RunningSum* sums) const;
  void AddBlockByEight(const float* biases, size_t begin, size_t end, RunningSum* sums) const;

  std::span<const ScaledAxis> scaled_;
  std::span<const ListedAxis> listed_;
  std::vector<OnAxis> points_;  // by axis, numbers before lists
};

}  // namespace attune::searchers

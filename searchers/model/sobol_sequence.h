#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune::searchers {

inline constexpr size_t kSobolDimensions = 200;

// A row of the table of direction numbers; their number is the degree of the polynomial.
struct SobolRow {
  uint32_t polynomial;
  uint32_t initial[11];
};
extern const SobolRow kSobolRows[kSobolDimensions];

// The Sobol sequence (1967), each dimension scrambled by nested uniform permutations (Owen,
// "Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995). The first 2^m points are still
// spread evenly, no point is at a corner, and each seed gives another sequence. A point is computed
// without the points before it. Dimensions beyond the table are random draws.
class SobolSequence {
 public:
  SobolSequence(size_t dimensions, uint64_t seed);

  // A coordinate of point `index`, in [0, 1) by steps of 2^-32. REQUIRES: dimension below the
  // count given.
  double Coordinate(size_t dimension, uint32_t index) const;

  // The same before scrambling. REQUIRES: dimension below kSobolDimensions as well.
  uint32_t Unscrambled(size_t dimension, uint32_t index) const;

 private:
  std::vector<uint32_t> directions_;  // 32 per dimension, the highest bit first
  uint64_t seed_;
};

}  // namespace attune::searchers

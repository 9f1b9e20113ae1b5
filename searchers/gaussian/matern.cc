#include "searchers/gaussian/matern.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace attune::searchers {
namespace {

// Numbers that are computed together. They fill two SSE2 registers, so that instructions for one
// register run while those for the other wait.
constexpr size_t kMaternLanes = 4;
using Lanes = double __attribute__((vector_size(8 * kMaternLanes)));
using LanesBits = int64_t __attribute__((vector_size(8 * kMaternLanes)));

// Replaces x by its exponential: Exp of core/base/elementary.h without branches.
// REQUIRES: -700 <= x <= 0.
inline void ToExp(Lanes& x) {
  constexpr double kPerLn2 = 1.44269504088896340736;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer in the lowest bits
  const Lanes shifted = x * kPerLn2 + kRound;
  const Lanes k = shifted - kRound;
  const Lanes r = (x - k * kLn2High) - k * kLn2Low;
  constexpr double kTaylor[] = {1.0 / 479001600.0,
                                1.0 / 39916800.0,
                                1.0 / 3628800.0,
                                1.0 / 362880.0,
                                1.0 / 40320.0,
                                1.0 / 5040.0,
                                1.0 / 720.0,
                                1.0 / 120.0,
                                1.0 / 24.0,
                                1.0 / 6.0,
                                0.5,
                                1.0};
  Lanes sum = r * kTaylor[0] + kTaylor[1];
  for (int i = 2; i < 12; ++i) sum = sum * r + kTaylor[i];
  const Lanes power = 1.0 + r * sum;
  LanesBits exponent;
  LanesBits bits;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  std::memcpy(&bits, &power, sizeof bits);
  bits += exponent << 52;
  std::memcpy(&x, &bits, sizeof x);
}

void ComputeLanes(double* values, double* slopes) {
  constexpr double kRoot5 = 2.2360679774997896964;
  constexpr double kFarthest = 9e4;  // squared distance beyond which the covariance is negligible
  Lanes r;
  std::memcpy(&r, values, sizeof r);
  for (size_t lane = 0; lane < kMaternLanes; ++lane)
    r[lane] = std::sqrt(std::min(r[lane], kFarthest));
  const Lanes scaled = r * kRoot5;
  Lanes decay = -scaled;
  ToExp(decay);
  const Lanes covariance = (1.0 + scaled + scaled * scaled * (1.0 / 3)) * decay;
  const Lanes slope = (1.0 + scaled) * decay * (-5.0 / 6);
  std::memcpy(values, &covariance, sizeof r);
  std::memcpy(slopes, &slope, sizeof r);
}

}  // namespace

void Matern52(double* values, double* slopes, size_t count) {
  size_t i = 0;
  double unwanted[kMaternLanes];
  for (; i + kMaternLanes <= count; i += kMaternLanes) {
    ComputeLanes(values + i, slopes != nullptr ? slopes + i : unwanted);
  }
  if (i == count) return;
  double rest[kMaternLanes] = {};
  std::copy(values + i, values + count, rest);
  ComputeLanes(rest, unwanted);
  std::copy(rest, rest + (count - i), values + i);
  if (slopes != nullptr) std::copy(unwanted, unwanted + (count - i), slopes + i);
}

}  // namespace attune::searchers

#include "core/base/elementary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/numbers.h"

namespace attune {
namespace {

// ln 2 as a sum of two parts. The first one has trailing zeros, so small multiples of it are exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// REQUIRES: the result is a normal number.
double PowerOfTwo(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// `x` is a number or a SIMD vector; each lane is computed like a single number. The coefficient of
// the highest power comes first.
template <int N, class T>
T Polynomial(const double (&coefficients)[N], T x) {
  T sum = T{} + coefficients[0];
  for (int i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Complement of the error function for y > 0.46875, divided by exp(-y²).
double ScaledErfc(double y) {
  if (y <= 4) {
    constexpr double kUpper[] = {
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
        6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
        1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
    constexpr double kLower[] = {1.0,
                                 1.57449261107098347e1,
                                 1.17693950891312499e2,
                                 5.37181101862009858e2,
                                 1.62138957456669019e3,
                                 3.29079923573345963e3,
                                 4.36261909014324716e3,
                                 3.43936767414372164e3,
                                 1.23033935480374942e3};
    return Polynomial(kUpper, y) / Polynomial(kLower, y);
  }
  constexpr double kUpper[] = {1.63153871373020978e-2, 3.05326634961232344e-1,
                               3.60344899949804439e-1, 1.25781726111229246e-1,
                               1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double kLower[] = {1.0,
                               2.56852019228982242e0,
                               1.87295284992346047e0,
                               5.27905102951428412e-1,
                               6.05183413124413191e-2,
                               2.33520497626869185e-3};
  constexpr double kInverseRootPi = 5.6418958354775628695e-1;
  const double inverse = 1 / (y * y);
  const double tail = inverse * Polynomial(kUpper, inverse) / Polynomial(kLower, inverse);
  return (kInverseRootPi - tail) / y;
}

// exp(-y²). To avoid the rounding error of y², y is split into a multiple of 1/16 and a rest.
double ExpOfMinusSquare(double y) {
  const double head = std::floor(y * 16) / 16;
  const double rest = (y - head) * (y + head);
  return Exp(-head * head) * Exp(-rest);
}

}  // namespace

namespace {

// The argument is reduced to |r| <= ln 2 / 2, where the Taylor series converges fast, times a power
// of two. Adding and subtracting kRounding rounds a number to an integer.
constexpr double kPerLn2 = 1.44269504088896340736;
constexpr double kRounding = 0x1.8p52;
constexpr double kTaylor[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                              1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                              1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                              1.0 / 24.0,         1.0 / 6.0,         0.5};

template <class T>
T ExpOfRest(T x, T k) {
  const T r = (x - k * kLn2High) - k * kLn2Low;
  return 1.0 + (r + r * r * Polynomial(kTaylor, r));
}

}  // namespace

double Exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return kInfinity;
  if (x < -745.2) return 0;
  const double k = (x * kPerLn2 + kRounding) - kRounding;
  // Two factors, because one power of two could overflow or underflow although the result does not.
  const auto exponent = static_cast<int64_t>(k);
  const int64_t half = exponent / 2;
  return ExpOfRest(x, k) * PowerOfTwo(half) * PowerOfTwo(exponent - half);
}

double LogOfSum(std::span<const double> logs) {
  using Double2 = double __attribute__((vector_size(16)));
  using Int2 = int64_t __attribute__((vector_size(16)));
  // The exponential of a smaller number would be subnormal, and adds nothing to a sum of at
  // least 1.
  constexpr double kLeast = -700;
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (size_t i = 0; i < logs.size(); i += 2) {
    const bool last = i + 1 == logs.size();
    const Double2 x = {std::max(logs[i] - most, kLeast),
                       last ? kLeast : std::max(logs[i + 1] - most, kLeast)};
    const Double2 shifted = x * kPerLn2 + kRounding;
    const Int2 exponent = std::bit_cast<Int2>(shifted) - std::bit_cast<int64_t>(kRounding);
    const Double2 power = std::bit_cast<Double2>((exponent + 1023) << 52);
    const Double2 exps = ExpOfRest(x, Double2(shifted - kRounding)) * power;
    sum += exps[0];
    if (!last) sum += exps[1];
  }
  return most + Log(sum);
}

// ln(m · 2^k) with m in [√½, √2), by the series of the inverse hyperbolic tangent.
double Log(double x) {
  if (std::isnan(x) || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > 1.41421356237309514547) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double f = mantissa - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  constexpr double kSeries[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const double half_square = 0.5 * f * f;
  // ln(1+f) = f - f²/2 + s·(f²/2 + the rest of the series); f has most of the digits.
  const double rest = s * (half_square + z * Polynomial(kSeries, z));
  const auto k = static_cast<double>(exponent);
  return k * kLn2High + (f - (half_square - (rest + k * kLn2Low)));
}

double NormalCdf(double z) {
  const double y = std::abs(z) * 0.70710678118654752440;
  if (y <= 0.46875) {
    constexpr double kUpper[] = {1.85777706184603153e-1, 3.16112374387056560e0,
                                 1.13864154151050156e2, 3.77485237685302021e2,
                                 3.20937758913846947e3};
    constexpr double kLower[] = {1.0, 2.36012909523441209e1, 2.44024637934444173e2,
                                 1.28261652607737228e3, 2.84423683343917062e3};
    const double square = y * y;
    const double erf = y * Polynomial(kUpper, square) / Polynomial(kLower, square);
    return 0.5 + (z < 0 ? -0.5 : 0.5) * erf;
  }
  const double tail = y > 27 ? 0 : 0.5 * ExpOfMinusSquare(y) * ScaledErfc(y);
  return z < 0 ? tail : 1 - tail;
}

double NormalMass(double low, double high) {
  if (low > 0) return NormalCdf(-low) - NormalCdf(-high);
  return NormalCdf(high) - NormalCdf(low);
}

double NormalQuantile(double tail) {
  double low = 0;
  double high = 38;  // the probability beyond it is smaller than any normal number
  for (int i = 0; i < 56; ++i) {
    const double middle = (low + high) / 2;
    (NormalCdf(-middle) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace attune

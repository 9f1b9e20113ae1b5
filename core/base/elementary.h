#pragma once

#include <span>

// Elementary functions that give the same bits on every machine. The last bits of the standard
// mathematical library depend on the processor and on the library's version. A proposal or a
// verdict that depends on such a bit could differ after a move to another host. These functions use
// only IEEE 754 additions, multiplications, divisions and square roots in a fixed order. The build
// forbids the compiler to contract them (cmake/AttuneBuild.cmake).
namespace attune {

// Natural exponential, within 2 units in the last place; 0 below -745, infinity above 709.78. NaN
// for NaN.
double Exp(double x);

// Natural logarithm, within 2 units in the last place; -infinity for 0, NaN below and for NaN.
double Log(double x);

// The logarithm of the sum of the exponentials of `logs`, added in their order. REQUIRES: `logs`
// has at least one number, and all are finite.
double LogOfSum(std::span<const double> logs);

// Distribution function of the standard normal, by the rational approximations of Cody ("Rational
// Chebyshev approximations for the error function", Mathematics of Computation 23, 1969); relative
// error below 1e-14 where the result is a normal number.
double NormalCdf(double z);

// The probability that a standard normal variable lies within [low, high]. It stays accurate far
// from the mean. REQUIRES: low <= high.
double NormalMass(double low, double high);

// The z for which NormalCdf(-z) = tail, to the precision of a bisection. REQUIRES: 0 < tail <= 0.5.
double NormalQuantile(double tail);

}  // namespace attune

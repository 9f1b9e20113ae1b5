#pragma once

#include <span>

// Elementary functions that give the same bits on every machine. The mathematical library picks
// other code paths for other processors, and its last bit changes with its version; a proposal or a
// verdict that hangs on that bit would not come again after a move to another host. Here is nothing
// but IEEE 754 additions, multiplications, divisions and square roots in a fixed order, and the
// build forbids contracting them (cmake/AttuneBuild.cmake).
namespace attune {

// Natural exponential, within 2 units in the last place; 0 below -745, infinity above 709.78. NaN
// for NaN.
double Exp(double x);

// Natural logarithm, within 2 units in the last place; -infinity for 0, NaN below and for NaN.
double Log(double x);

// The logarithm of the sum of the exponentials of some numbers, added in their order. REQUIRES: at
// least one, and none that is infinite or NaN.
double LogOfSum(std::span<const double> logs);

// Distribution function of the standard normal, by the rational approximations of Cody ("Rational
// Chebyshev approximations for the error function", Mathematics of Computation 23, 1969); relative
// error below 1e-14 where the result is a normal number.
double NormalCdf(double z);

// How much of a normal distribution lies within [low, high], in units of its deviation from its
// mean, without losing the digits of a far tail. REQUIRES: low <= high.
double NormalMass(double low, double high);

// The z beyond which so much of the standard normal lies: NormalCdf(-z) = tail, as near as
// bisection comes. REQUIRES: 0 < tail <= 0.5.
double NormalQuantile(double tail);

}  // namespace attune

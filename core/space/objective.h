#pragma once

#include <string>

namespace attune {

enum class Mode { kMin, kMax };

// The metric a sweep improves. NaN and infinities of either sign are the worst value: all equal to
// each other and worse than every finite one.
struct Objective {
  std::string metric;
  Mode mode = Mode::kMax;

  bool Better(double a, double b) const;  // strictly
  bool Worse(double a, double b) const { return Better(b, a); }
  bool operator==(const Objective&) const = default;
};

inline Objective Maximise(std::string metric) { return {std::move(metric), Mode::kMax}; }
inline Objective Minimise(std::string metric) { return {std::move(metric), Mode::kMin}; }

}  // namespace attune

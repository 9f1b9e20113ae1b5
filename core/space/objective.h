#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/space/value.h"

namespace attune {

enum class Mode { kMin, kMax };

std::string_view Name(Mode mode);  // min, max

// A metric that a sweep improves. NaN and infinities of either sign are the worst value: all equal
// to each other and worse than every finite one.
struct Objective {
  std::string metric;
  Mode mode = Mode::kMax;

  double Of(const Metrics& metrics) const;  // NaN where the metric is missing
  bool Better(double a, double b) const;    // strictly
  bool Worse(double a, double b) const { return Better(b, a); }
  bool operator==(const Objective&) const = default;
};

inline Objective Maximise(std::string metric) { return {std::move(metric), Mode::kMax}; }
inline Objective Minimise(std::string metric) { return {std::move(metric), Mode::kMin}; }

// Bounds of a metric, both included; at least one is there. NaN and infinities are outside.
struct Constraint {
  std::string metric;
  std::optional<double> min;
  std::optional<double> max;

  bool Holds(double value) const;
  bool operator==(const Constraint&) const = default;
};

// What the objectives have in these metrics, in their order, where the report counts: every
// objective is there and finite, and every constraint holds. Empty where it does not.
std::vector<double> ValuesThatCount(const std::vector<Objective>& objectives,
                                    const std::vector<Constraint>& constraints,
                                    const Metrics& metrics);

}  // namespace attune

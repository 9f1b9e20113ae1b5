#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/space/value.h"

namespace attune {

enum class Mode { kMin, kMax };

std::string_view Name(Mode mode);  // min, max

// A metric that a sweep improves. NaN and both infinities count as the worst value: they are equal
// to each other, and worse than every finite value.
struct Objective {
  std::string metric;
  Mode mode = Mode::kMax;

  double ValueIn(const Metrics& metrics) const;  // NaN if the metric is missing
  bool Better(double a, double b) const;         // strictly
  bool Worse(double a, double b) const { return Better(b, a); }
  bool operator==(const Objective&) const = default;
};

inline Objective Maximise(std::string metric) { return {std::move(metric), Mode::kMax}; }
inline Objective Minimise(std::string metric) { return {std::move(metric), Mode::kMin}; }

// Inclusive bounds of a metric; at least one of them is set. NaN and infinities are outside.
struct Constraint {
  std::string metric;
  std::optional<double> min;
  std::optional<double> max;

  bool IsMetBy(double value) const;
  bool operator==(const Constraint&) const = default;
};

// The values of the objectives, in their order, if a report with these metrics counts; else empty.
// A report counts if every objective is present and finite and every constraint holds.
std::vector<double> ValuesThatCount(const std::vector<Objective>& objectives,
                                    const std::vector<Constraint>& constraints,
                                    const Metrics& metrics);

}  // namespace attune

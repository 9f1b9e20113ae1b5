#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "searchers/model/record.h"

namespace attune::searchers {

// The distance between two coordinates of a dimension, as a share of its range. It is 1 between
// different listed values, and between a coordinate and an absent one.
double Distance(const Cube::Dimension& dimension, double one, double other);

// Whether a trial's point is within this distance of the point in each dimension.
bool HasTrialAt(const Record& record, const Point& point, double distance);

// The `count` trials nearest to a point, or all if there are fewer; the nearest first. Among
// equals, the first of `trials` comes first.
std::vector<uint32_t> NearestOf(const Record& record, const std::vector<uint32_t>& trials,
                                const Point& point, size_t count);

// The nearest trial. REQUIRES: at least one trial.
inline uint32_t Nearest(const Record& record, const std::vector<uint32_t>& trials,
                        const Point& point) {
  return NearestOf(record, trials, point, 1).front();
}

}  // namespace attune::searchers

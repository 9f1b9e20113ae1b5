#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "searchers/model/record.h"

namespace attune::searchers {

// How far two coordinates of a dimension are from each other, in widths of its range. Listed values
// that differ, and parameters that only one of the two has, are as far apart as a range is wide.
double Distance(const Cube::Dimension& dimension, double one, double other);

// Whether a trial was created whose place is within that distance of the point in each dimension.
bool HasTrialAt(const Record& record, const Point& point, double distance);

// Of these trials the ones that lie nearest to a point of the cube, as many or all there are, the
// nearest first and of equals the first.
std::vector<uint32_t> NearestOf(const Record& record, const std::vector<uint32_t>& trials,
                                const Point& point, size_t count);

// The nearest one. REQUIRES: a trial.
inline uint32_t Nearest(const Record& record, const std::vector<uint32_t>& trials,
                        const Point& point) {
  return NearestOf(record, trials, point, 1).front();
}

}  // namespace attune::searchers

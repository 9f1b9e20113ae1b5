#include "searchers/model/nearest.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attune::searchers {

double Distance(const Cube::Dimension& dimension, double one, double other) {
  if (std::isnan(one) && std::isnan(other)) return 0;
  if (std::isnan(one) || std::isnan(other)) return 1;
  if (dimension.kind == Cube::Kind::kChoice) return one == other ? 0 : 1;
  return std::abs(one - other);
}

bool HasTrialAt(const Record& record, const Point& point, double distance) {
  const auto& dimensions = record.cube().dimensions();
  const auto is_there = [&](uint32_t trial) {
    for (size_t i = 0; i < point.size(); ++i) {
      if (Distance(dimensions[i], record.Coordinate(trial, i), point[i]) > distance) return false;
    }
    return true;
  };
  for (uint32_t trial = 0; trial < record.size(); ++trial) {
    if (record.trial(trial).placed && is_there(trial)) return true;
  }
  return false;
}

std::vector<uint32_t> NearestOf(const Record& record, const std::vector<uint32_t>& trials,
                                const Point& point, size_t count) {
  const auto& dimensions = record.cube().dimensions();
  std::vector<std::pair<double, size_t>> by_distance;
  for (size_t i = 0; i < trials.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < dimensions.size(); ++j) {
      const double apart = Distance(dimensions[j], record.Coordinate(trials[i], j), point[j]);
      sum += apart * apart;
    }
    by_distance.emplace_back(sum, i);
  }
  count = std::min(count, by_distance.size());
  std::ranges::partial_sort(by_distance, by_distance.begin() + static_cast<ptrdiff_t>(count));
  std::vector<uint32_t> nearest;
  for (size_t i = 0; i < count; ++i) nearest.push_back(trials[by_distance[i].second]);
  return nearest;
}

}  // namespace attune::searchers

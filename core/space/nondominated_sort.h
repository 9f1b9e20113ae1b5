#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune {

// Nondominated sorting ranks candidates by several objectives. The first front contains the
// candidates that no other one dominates. The next front contains those that no candidate of the
// rest dominates, and so on (Deb et al., "A fast and elitist multiobjective genetic algorithm:
// NSGA-II", IEEE Transactions on Evolutionary Computation 6, 2002, §III-A).

// The order of the members of one front.
enum class FrontOrder {
  // Members that add most to the hypervolume of the front come first (Ozaki et al., "Multiobjective
  // tree-structured Parzen estimator", JAIR 73, 2022). Losses are scaled by the front's extent, and
  // the reference point lies a tenth of it beyond the worst values. With three objectives, only the
  // 24 least crowded members are ordered like this. With more objectives, the order is kCrowding.
  kHypervolume,
  // Members whose neighbours in each objective are farthest apart come first (NSGA-II, §III-B).
  kCrowding,
};

// The first `count` rows, the best first. `losses` has one row for each candidate; small is good.
// Among equal rows, a later one is in a later front. Cost: with two objectives, a binary search for
// each row; with more, each front compares all remaining rows with its members.
// REQUIRES: at least two objectives; finite losses; rows in lexicographic order.
std::vector<uint32_t> NondominatedSort(const std::vector<double>& losses, size_t objectives,
                                       size_t count, FrontOrder order);

// For each point, the distance between its two neighbours, summed over the coordinates. Distances
// are fractions of the extent of each coordinate; they are infinite for the first and the last
// point. REQUIRES: at least one point; all points have the same number of coordinates.
std::vector<double> CrowdingDistances(const std::vector<std::vector<double>>& points);

// The volume that the points dominate, up to the reference point (1.1, …, 1.1); small coordinates
// are good. REQUIRES: at least two coordinates.
double Hypervolume(std::vector<std::vector<double>> points);

}  // namespace attune

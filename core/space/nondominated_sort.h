#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune {

// Who is best where there are several objectives: front after front, those that no other one
// dominates, then those that none of the rest does, and so on (Deb et al., "A fast and elitist
// multiobjective genetic algorithm: NSGA-II", IEEE Transactions on Evolutionary Computation 6,
// 2002, §III-A).

// What tells the members of one front apart.
enum class Within {
  // What it alone adds to the hypervolume of the front (Ozaki et al., "Multiobjective
  // tree-structured Parzen estimator", JAIR 73, 2022), scaled by its extent, up to a tenth of it
  // beyond its worst values. Of four objectives or more, and in fronts of three beyond the 24 least
  // crowded members, kCrowding.
  kHypervolume,
  // How far its neighbours in each objective are from each other (NSGA-II, §III-B).
  kCrowding,
};

// Which rows are the first so many, the best first. `losses` has a row a candidate; small is good.
// Of equal rows a later one is in a later front. With two objectives a row costs a search among the
// fronts; with more a front costs a comparison of all that are left with its members.
// REQUIRES: two objectives or more; finite losses, the rows in lexicographic order.
std::vector<uint32_t> NondominatedSort(const std::vector<double>& losses, size_t objectives,
                                       size_t count, Within within);

// Of each point, how far its neighbours are from each other, summed over the coordinates in shares
// of their extent; infinite at the ends. REQUIRES: a point at least; all have as many coordinates.
std::vector<double> CrowdingDistances(const std::vector<std::vector<double>>& points);

// The volume between points and (1.1, …, 1.1), of which they dominate every part; small is good.
// REQUIRES: two coordinates or more.
double Hypervolume(std::vector<std::vector<double>> points);

}  // namespace attune

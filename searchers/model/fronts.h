#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "searchers/model/record.h"

namespace attune::searchers {

// Who is best where there are several objectives. Completed trials come before those that were cut
// short, of which those that came further come first, then infeasible and failed ones, as
// Record::Better says; among those it holds for equal, front after front: those that no other one
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

// The first so many, the best first. With one objective the first of `sorted`. A front costs a look
// at all that are left, and with three objectives or more a comparison of each with its members.
// REQUIRES: sorted by Record::Better.
std::vector<uint32_t> BestOf(const Record& record, const std::vector<uint32_t>& sorted,
                             size_t count, Within within);

// The volume between points and (1.1, …, 1.1), of which they dominate every part; small is good.
// REQUIRES: two coordinates or more.
double Hypervolume(std::vector<Point> points);

}  // namespace attune::searchers

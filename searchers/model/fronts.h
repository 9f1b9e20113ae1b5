#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/space/nondominated_sort.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// The first so many, the best first. Completed trials come before those that were cut short, of
// which those that came further come first, then infeasible and failed ones, as Record::Better
// says; among those it holds for equal, front after front (core/space/nondominated_sort.h). With
// one objective the first of `sorted`.
// REQUIRES: sorted by Record::Better.
std::vector<uint32_t> BestOf(const Record& record, const std::vector<uint32_t>& sorted,
                             size_t count, FrontOrder order);

}  // namespace attune::searchers

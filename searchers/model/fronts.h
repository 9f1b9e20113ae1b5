#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/space/nondominated_sort.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// The best `count` trials, the best first. With one objective, these are the first of `sorted`.
//
// With several objectives, trials rank as by Record::Better up to the comparison of values:
// completed trials first, then unfinished ones by their last step, then infeasible and failed ones.
// Completed trials, and unfinished ones with the same step, rank front by front
// (core/space/nondominated_sort.h).
// REQUIRES: `sorted` is sorted by Record::Better.
std::vector<uint32_t> BestOf(const Record& record, const std::vector<uint32_t>& sorted,
                             size_t count, FrontOrder order);

}  // namespace attune::searchers

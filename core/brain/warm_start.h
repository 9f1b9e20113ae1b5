#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/analysis/importance.h"
#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

namespace attune {

// The results that a sweep with this spec takes from an earlier sweep with these `results`.
//
// - Results are ranked as searchers rank them: complete trials by their value, then trials that
// were
//   stopped early (more steps first), then failed trials. With several metrics, the order is that
//   of NondominatedSort with the hypervolume (core/space/nondominated_sort.h).
// - A parameter that an earlier trial lacks gets a random value from the spec's seed, so that the
//   result says nothing about it. Parameters that the spec lacks are left out.
// - A result with a value outside the spec's ranges is not taken.
// - At most kMostPrior / (number of earlier sweeps) results are taken, spread evenly over the
// ranks.
//
// The result goes into the log, so the earlier sweep is never needed again. The error (kInvalid,
// for the key warm_start) says that the earlier sweep lacks a metric of the spec or improves it in
// the other direction, that no parameter is in both, or that no result can be taken.
Result<WarmStart> TakeResults(const SweepSpec& spec, SweepId from, const SweepSpec& earlier,
                              std::vector<TrialResult> results);

}  // namespace attune

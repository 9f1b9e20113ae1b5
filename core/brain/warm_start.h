#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/analysis/importance.h"
#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

namespace attune {

// What a sweep of this spec takes of an earlier one, of which `results` is known now.
//
// - Ranked as searchers do: completed ones by their value, then those cut short, who came further
//   first, then failed ones. By several metrics front after front, in each whoever adds most to its
//   hypervolume first (core/space/nondominated_sort.h).
// - A parameter that an earlier trial lacks is drawn at random over its range, by the spec's seed,
//   so that the result says nothing about it. What the spec has no parameter for is left out.
// - A result with a value outside of the spec's range is not taken.
// - Of more than kMostPrior / (sweeps to begin with) those are taken that are spread over the
// ranks.
//
// Pure: what was taken goes into the log, and the earlier sweep is never asked again. kInvalid, for
// the key warm_start: the earlier sweep does not improve a metric of the spec's, or in the other
// direction; no parameter is in both; nothing is there to take.
Result<WarmStart> TakeFrom(const SweepSpec& spec, SweepId from, const SweepSpec& earlier,
                           std::vector<TrialResult> results);

}  // namespace attune

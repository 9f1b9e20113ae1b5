#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "simulator/curves.h"

namespace attune::simulate {

// Curves as they were measured, from what `attune db export --what reports` prints for one sweep:
// the columns `trial`, `step` and `metrics.METRIC`, and where they are there `sweep`, `attempt` and
// `seconds`; rows of an attempt in the order of their steps, others left alone.
//
// Trial n takes the curve at place n of the recorded ones, and with more trials than curves begins
// again with the first; its configuration plays no part. Between two records a curve stays at the
// earlier one; beyond the last, at that one. A step takes the time it took there.
//
// Errors: kInvalid; the message begins with `file` and the line.
Result<std::unique_ptr<Curves>> ReadCurves(std::string_view csv, const std::string& file,
                                           const std::string& metric);

}  // namespace attune::simulate

#pragma once

#include <string>

#include "core/log/sweep_spec.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

// `reports.pattern` of a file, the value of its key `reports`: a regular expression whose named
// groups have every metric that `spec` names. Empty where the file has none.
std::string ReadReportPattern(const Fields& file, const SweepSpec& spec, Faults& faults);

}  // namespace attune::sweepfile

#pragma once

#include <string_view>
#include <vector>

#include "core/log/sweep_spec.h"
#include "sweepfile/reader.h"

// Rules between the values of a sweep file that the rows cannot express.
namespace attune::sweepfile {

// Checks the last element, which was read from `spot`.
void CheckElement(const std::vector<Constraint>& constraints, const Spot& spot, Faults& faults);
void CheckElement(const std::vector<Threshold>& thresholds, const Spot& spot, Faults& faults);
void CheckElement(const std::vector<LogPolicy>& policies, const Spot& spot, Faults& faults);
void CheckElement(const std::vector<PatchedCode>& patched, const Spot& spot, Faults& faults);
// Also writes the hash in lower case.
void CheckElement(std::vector<DataSpec>& data, const Spot& spot, Faults& faults);

// The spot of a key of the map at `spot`; the key may be absent.
Spot KeyIn(const Spot& spot, std::string_view name);

// Sets the metric and the mode if stop.plateau at `spot` omits them. REQUIRES: the spec has its
// objectives and a plateau.
void CompletePlateau(const Spot& spot, SweepSpec& spec, Faults& faults);

// The pattern of reports at `spot` must have a group for each metric that the spec names.
void CheckReportPattern(const Spot& spot, const SweepSpec& spec, Faults& faults);

}  // namespace attune::sweepfile

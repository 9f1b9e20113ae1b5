#pragma once

#include "base/result.h"
#include "core/log/labels.h"
#include "sweepfile/codec.h"
#include "sweepfile/reader.h"

// resources.requires: {gpu: [h100, a100], zone: a}.
namespace attune::sweepfile {

Requirements ReadRequirements(const Spot& spot, Faults& faults);

Json ToJson(const Requirements& required);
Result<Requirements> RequirementsFromJson(const Json& json);

}  // namespace attune::sweepfile

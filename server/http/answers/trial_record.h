#pragma once

#include "core/log/event.h"
#include "core/log/sweep_spec.h"
#include "server/store/reader.h"

namespace attune::server {

// What the store knows of a trial that may have left the brain's memory, to open it again.
TrialRecord RecordOf(const TrialDetail& detail, const SweepSpec& spec);

}  // namespace attune::server

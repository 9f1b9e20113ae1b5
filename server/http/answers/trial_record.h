#pragma once

#include "core/log/event.h"
#include "core/log/sweep_spec.h"
#include "server/store/reader.h"

namespace attune::server {

// The stored state of a trial that may have left the brain's memory, for opening it again.
TrialRecord RecordOf(const TrialDetail& detail, const SweepSpec& spec);

}  // namespace attune::server

#pragma once

#include "trainable/start/launcher.h"
#include "trainable/start/standalone_options.h"

namespace attune::inline sdk::trainable {

// Trains once without a server: forks the workers, is their executor, prints a line a report.
// Returns in each worker with its channel, and in the parent with the exit code once nothing of
// them is left: 0, 1 when training failed, 130 after Ctrl-C, in general 128 and the signal's
// number.
//
// REQUIRES: one thread, no tensor operation so far.
Role RunStandalone(const StandaloneOptions& options);

}  // namespace attune::inline sdk::trainable

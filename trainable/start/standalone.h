#pragma once

#include "trainable/start/launcher.h"
#include "trainable/start/standalone_options.h"

namespace attune::trainable {

// Trains once without a server: forks the workers, is their executor, prints a line a report.
// Returns in each worker with its channel, and in the parent with the exit code once all have
// ended: 0, 1 when training failed, 130 after Ctrl-C.
//
// REQUIRES: one thread, no tensor operation so far.
Role RunStandalone(const StandaloneOptions& options);

}  // namespace attune::trainable

#pragma once

#include <variant>

#include "trainable/gang/launcher.h"
#include "trainable/start/standalone_options.h"

namespace attune::inline sdk::trainable {

// Trains once without a server: forks the workers, is their executor, prints a line for each
// report. Returns in each worker what it is to do, and in the parent the exit code once no process
// of theirs is left: 0, 1 if training failed, 130 after Ctrl-C, in general 128 and the signal's
// number.
//
// REQUIRES: one thread, no tensor operation so far.
std::variant<int, ForkedWorker> RunStandalone(const StandaloneOptions& options);

}  // namespace attune::inline sdk::trainable

#pragma once

#include <variant>

#include "trainable/gang/launcher.h"
#include "trainable/start/standalone_options.h"

namespace attune::inline sdk::trainable {

// Trains once without a server: forks the workers, acts as their executor, and prints a line for
// each report. Returns a ForkedWorker in each worker. In the parent it returns the exit code when
// none of their processes is left: 0, 1 if training failed, or 128 + N after signal N (130 after
// Ctrl-C).
//
// REQUIRES: this process has one thread and has run no tensor operation.
std::variant<int, ForkedWorker> RunStandalone(const StandaloneOptions& options);

}  // namespace attune::inline sdk::trainable

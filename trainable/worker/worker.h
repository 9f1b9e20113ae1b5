#pragma once

#include <string>
#include <vector>

#include "attune/main.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// Runs a worker: waits for `start` on the channel, joins the gang, trains, sends `done` or `error`.
// Returns 0. A worker that fails sends its error and ends the process at once with status 1. It
// does not unwind the stack, because destructors could wait for ranks that are gone.
//
// The training code runs on a separate thread.
int RunWorker(UniqueFd channel, std::vector<std::string> args, const Program& program);

}  // namespace attune::inline sdk::trainable

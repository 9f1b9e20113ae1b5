#pragma once

#include <string>
#include <vector>

#include "attune/main.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// Runs a rank: waits for `start` on the channel, joins the gang, trains, says `done` or `error`.
// Returns 0; a rank that failed says so first and leaves the process at once with status 1, nothing
// unwound, because what it would have to wait for in tearing down may never come.
//
// The training code runs on a thread of its own.
int RunWorker(UniqueFd channel, std::vector<std::string> args, const Program& program);

}  // namespace attune::inline sdk::trainable

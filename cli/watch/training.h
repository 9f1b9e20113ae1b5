#pragma once

#include <memory>

#include "cli/client/api.h"
#include "cli/output.h"
#include "cli/watch/progress.h"

namespace attune::cli {

// A sweep of one trial, shown as the training that it is: what rank 0 prints goes to `log` as it
// stands, and what becomes of its gang, line by line, to `notes`. The three outlive it.
std::unique_ptr<Progress> ShowTraining(Api& api, TrialName trial, Output& log, Output& notes);

}  // namespace attune::cli

#pragma once

#include <memory>

#include "cli/client/api.h"
#include "cli/output.h"
#include "cli/watch/progress.h"

namespace attune::cli {

// Shows a sweep of one trial as a training. Copies the log of rank 0 to `log`, and prints a line
// for each change of the trial to `notes`. The Api and both outputs must outlive the result.
std::unique_ptr<Progress> MakeTrainingProgress(Api& api, TrialName trial, Output& log,
                                               Output& notes);

}  // namespace attune::cli

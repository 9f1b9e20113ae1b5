#pragma once

#include <string>
#include <vector>

#include "cli/client/api.h"

namespace attune::cli {

// The end of the log of a trial's last attempt; empty if it did not fail.
std::vector<std::string> FailureLog(const rest::TrialDetail& trial);

// The same for the trial of `trials` that failed last, under the sentence that names its rank.
// Empty if none failed or the server does not have its log.
std::vector<std::string> LastFailure(Api& api, const std::vector<rest::Trial>& trials);

}  // namespace attune::cli

#pragma once

#include <string>
#include <vector>

#include "cli/client/api.h"

namespace attune::cli {

// The end of the log of a trial's last failed attempt; empty if it is unknown.
// REQUIRES: `trial` is what GET of one trial answers.
std::vector<std::string> FailureLog(const Json& trial);

// The same for the trial of `trials` that failed last, under a title. Empty if none failed or the
// server does not have its log.
std::vector<std::string> LastFailure(Api& api, const Json& trials);

}  // namespace attune::cli

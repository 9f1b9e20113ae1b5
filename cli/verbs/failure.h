#pragma once

#include <string>
#include <vector>

#include "cli/client/api.h"

namespace attune::cli {

// The end of the log by which a trial's last attempt failed; empty where that is not known.
// REQUIRES: `trial` is what GET of one trial answers.
std::vector<std::string> FailureLog(const Json& trial);

// The same of the trial that failed last among a sweep's `trials`, under a title; empty where none
// has failed, and where the server does not say more.
std::vector<std::string> LastFailure(Api& api, const Json& trials);

}  // namespace attune::cli

#pragma once

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/run.h"
#include "pilots/manager.h"

namespace attune::cli {

// Asks the server for waiting gangs and connected executors. `labels`: the labels of every pilot.
Result<pilots::Situation> ReadSituation(Api& api, const Labels& labels);

}  // namespace attune::cli

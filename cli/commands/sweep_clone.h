#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

// The file of the server's sweep `id`, changed by `settings`. Its paths are absolute, so the clone
// runs the same program from any folder. kInvalid names each wrong key.
Result<SweepDocument> CloneSweep(Api& api, const std::string& id,
                                 const std::vector<sweepfile::Setting>& settings);

}  // namespace attune::cli

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

// The file of a new sweep: that of the server's sweep `id` with settings. The server has resolved
// the paths in it already: they are absolute, so the clone runs the same program from everywhere.
// kInvalid names each key that is wrong.
Result<SweepDocument> CloneSweep(Api& api, const std::string& id,
                                 const std::vector<sweepfile::Setting>& settings);

}  // namespace attune::cli

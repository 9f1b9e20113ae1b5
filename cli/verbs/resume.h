#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/json.h"

namespace attune::cli {

// What `attune run FILE` finds in its data folder.
struct Unfinished {
  std::optional<Json> same;         // the newest one that has this very text and has not ended
  std::vector<std::string> others;  // ids of sweeps that have not ended and will run beside it
};

// Reads the sweeps over REST. A text whose sweeps have all ended is tried afresh.
Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document);

}  // namespace attune::cli

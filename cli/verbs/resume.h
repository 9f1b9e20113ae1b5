#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"

namespace attune::cli {

// Sweeps in the data folder of `attune run FILE` that have not ended.
struct Unfinished {
  std::optional<Parsed<rest::SweepDetail>> same;  // the newest sweep of this text
  std::vector<std::string> others;                // ids of the other sweeps; they run as well
};

// Reads the sweeps over REST.
Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document);

}  // namespace attune::cli

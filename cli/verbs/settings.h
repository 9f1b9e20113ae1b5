#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/json.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

// Settings as people write them, KEY=VALUE with the keys of the sweep file. A parameter may have
// dots in its name. kInvalid names the setting.
Result<std::vector<sweepfile::Setting>> SettingsOf(const std::vector<std::string>& words);

// Settings as people write them, KEY=VALUE with the keys of the sweep file, as a JSON Merge Patch:
// {"stop.max_trials=200", "parameters.lr.max=0.1"} gives
// {"stop": {"max_trials": 200}, "parameters": {"lr": {"max": 0.1}}}. A value that is no JSON is
// text; null takes the key away. A parameter may have dots in its name. kInvalid names the setting.
Result<Json> PatchOf(const std::vector<std::string>& words);

}  // namespace attune::cli

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/json.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

// Parses words KEY=VALUE with keys of the sweep file. Names of parameters may have dots. kInvalid
// names the wrong word.
Result<std::vector<sweepfile::Setting>> SettingsOf(const std::vector<std::string>& words);

// Parses words KEY=VALUE to a JSON Merge Patch (RFC 7396) of the sweep file:
// {"stop.max_trials=200", "parameters.lr.max=0.1"} becomes
// {"stop": {"max_trials": 200}, "parameters": {"lr": {"max": 0.1}}}. A value that is not JSON is a
// string; null removes the key. Names of parameters may have dots. kInvalid names the wrong word.
Result<Json> PatchOf(const std::vector<std::string>& words);

}  // namespace attune::cli

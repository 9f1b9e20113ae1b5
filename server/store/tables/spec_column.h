#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/log/sweep_spec.h"
#include "server/store/sqlite.h"

namespace attune::server {

// Decodes the column `spec` of the table of sweeps. Clients poll sweeps, and specs seldom change,
// so the process keeps the specs that it decoded last. Safe to call from any thread. Throws
// Json::exception if the text is damaged.
SweepSpec SpecOfColumn(std::string_view text);

// The digests in the specs of all sweeps, and those of the code of trials. Specs are not decoded,
// because a snapshot of code must not be deleted only because a spec is damaged.
Result<std::set<std::string>> ReadCodeDigests(sqlite::Connection& connection);

}  // namespace attune::server

#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/log/sweep_spec.h"

namespace attune::server {

// Decodes the column `spec` of the table of sweeps. Clients poll sweeps, and specs seldom change,
// so the process keeps the specs that it decoded last. Safe to call from any thread. Throws
// Json::exception if the text is damaged.
SweepSpec SpecOfColumn(std::string_view text);

// Adds the digests in the text. It does not decode the text, because a snapshot of code must not be
// deleted only because a spec is damaged.
void AddDigestsIn(std::string_view text, std::set<std::string>& digests);

}  // namespace attune::server

#pragma once

#include <string>

#include "core/log/sweep_spec.h"

namespace attune {

// Replaces the code of a sweep by a snapshot that has the chosen patches already, so parameters
// with patches become plain choices. An empty digest: the client takes a snapshot. REQUIRES: the
// sweep has code.
void FixCode(SweepSpec& spec, const std::string& digest);

}  // namespace attune

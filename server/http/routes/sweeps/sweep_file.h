#pragma once

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "server/http/transport/message.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

// Checks that the query `directory` is absolute or missing.
Status CheckDirectory(const Request& request);

// Parses the sweep file in the body of a request. The queries `file` and `directory` say where the
// client has it. REQUIRES: CheckDirectory succeeds.
sweepfile::Parsed ParseSweepFile(const Request& request, const Algorithms& algorithms);

}  // namespace attune::server

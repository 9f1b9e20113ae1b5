#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/client/endpoint.h"
#include "cli/commands/pilots/pilot_flags.h"
#include "cli/host.h"
#include "cli/run.h"
#include "pilots/engine.h"

namespace attune::cli {

// A running server and the address at which pilots reach it.
struct ReachableServer {
  std::unique_ptr<RunningServer> local;  // null if it runs in another process
  Endpoint endpoint;
  std::string for_pilots;  // HOST:PORT
};

// Finds the server that the options name, or starts one on the data folder. kInvalid if pilots
// cannot reach it.
Result<ReachableServer> FindOrStartServer(const PilotFlags& flags,
                                          const pilots::EngineFacts& engine, Console& console);

// The text that pilots join with.
Result<std::string> ReadJoin(const PilotFlags& flags);

}  // namespace attune::cli

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attune::gang {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// Returns the environment for a program of a sweep: this process's environment with `changes`
// applied in order. It omits the server's token, the channels of workers, and the rank of this
// process in a batch system or MPI job.
std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes);

}  // namespace attune::gang

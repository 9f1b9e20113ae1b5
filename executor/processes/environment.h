#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attune::gang {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// This process's environment as a program of a sweep may see it, and `changes`; later ones win.
// It lacks the server's token, the channels of workers, and the place of this process in a batch
// system or an MPI job.
std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes);

}  // namespace attune::gang

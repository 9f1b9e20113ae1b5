#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attune::gang {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// This process's environment as a program of a sweep may see it, and `changes`; later ones win.
// Without the server's token, another worker's channel, and what says which task of a batch
// system's step or which rank of MPI this process is.
std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes);

}  // namespace attune::gang

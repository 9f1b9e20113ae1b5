#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attune::gang {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// This process's environment as a program of a sweep may see it (without the server's token and
// without another worker's channel), and `changes`; later ones win.
std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes);

}  // namespace attune::gang

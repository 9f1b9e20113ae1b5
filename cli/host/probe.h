#pragma once

#include <filesystem>

#include "cli/doctor/facts.h"

namespace attune::cli {

// Reads the facts of this host. Briefly creates a cgroup and binds the ports of a server.
HostFacts InspectHost(const std::filesystem::path& data_dir);

}  // namespace attune::cli

#pragma once

#include <filesystem>

#include "cli/doctor/facts.h"

namespace attune::cli {

// Reads what this host is like. For a moment it makes a cgroup and binds the ports of a server.
HostFacts InspectHost(const std::filesystem::path& data_dir);

}  // namespace attune::cli

#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

// Connections of executors to a server of this machine, which has no certificate. Each makes sure
// that no program of another user gets the executor's token.
namespace attune::cli {

// Connects to the server that runs on the data folder, wherever it listens for executors now.
Result<UniqueFd> ConnectToServerOf(const std::filesystem::path& data_dir);

// Connects to HOST:PORT on this machine, for an executor that does not know the server's data
// folder. kDenied if a program of a user other than this one and root listens on that port.
Result<UniqueFd> ConnectToOwnPort(const std::string& target);

}  // namespace attune::cli

#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

// Connections of executors to a server on this host without TLS. Each makes sure that no program of
// another user gets the executor's token.
namespace attune::cli {

// Connects to the server that runs on the data folder, at its current address for executors.
Result<UniqueFd> ConnectToServerOf(const std::filesystem::path& data_dir);

// Connects to HOST:PORT on this host, if the server's data folder is not known. kDenied if a
// program of another user listens there, except root.
Result<UniqueFd> ConnectToOwnPort(const std::string& target);

}  // namespace attune::cli

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "system/unique_fd.h"

// Stream sockets between processes of this machine, named by a path of any length. Only the folder
// of the path must exist.
namespace attune {

// Listens at the path, and replaces a socket that exists there. Only this user may connect. Errors:
// see SystemError().
Result<UniqueFd> ListenAtPath(const std::filesystem::path& path);

// Connects to the process that listens at the path. kNotFound if no process does. Other errors: see
// SystemError().
Result<UniqueFd> ConnectToPath(const std::filesystem::path& path);

struct Peer {
  pid_t process = 0;
  uid_t user = 0;
};

// The process at the other end, at the time when it connected or began to listen.
std::optional<Peer> PeerOf(int socket);

}  // namespace attune

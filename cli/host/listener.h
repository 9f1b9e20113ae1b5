#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace attune::cli {

// A process that listens on a TCP port of this host.
struct Listener {
  pid_t pid = 0;
  std::string program;  // file name of the program: attune, nginx
};

// nullopt if no process listens there, or if this user may not see the process.
std::optional<Listener> FindListener(int port);

// The users whose programs listen on a TCP port of this host, at any address.
std::vector<uid_t> UsersListeningOn(int port);

}  // namespace attune::cli

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace attune::cli {

// A process that listens on a TCP port of this host.
struct Listener {
  pid_t pid = 0;
  std::string program;  // name of its file: attune, nginx
};

// Nothing if nobody listens there, and if this user may not see whose socket it is.
std::optional<Listener> FindListener(int port);

}  // namespace attune::cli

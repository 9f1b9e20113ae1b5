#pragma once

#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::server {

// A TCP socket that listens, close-on-exec and non-blocking, and its port.
struct TcpListener {
  UniqueFd socket;
  int port = 0;
  bool is_loopback = false;  // only this machine reaches it
};

// Listens on an address of this machine. Port 0 takes any free port. `flag` is the option with
// which people choose another port; messages name it. Returns kUnavailable if the port is taken or
// the host is not an address of this machine, and kDenied if the process may not use the port.
Result<TcpListener> ListenTcp(const std::string& host, int port, const std::string& flag);

}  // namespace attune::server

#pragma once

#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::server {

// A listening TCP socket, close-on-exec and non-blocking.
struct TcpListener {
  UniqueFd socket;
  int port = 0;
  bool is_loopback = false;  // only this machine can reach it
};

// Listens on an address of this machine. Port 0 means any free port. Messages tell people to choose
// another port with the option `flag`. kUnavailable: the port is taken, or the host is not an
// address of this machine. kDenied: the process may not use the port.
Result<TcpListener> ListenTcp(const std::string& host, int port, const std::string& flag);

}  // namespace attune::server

#include "executor/processes/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "system/system_error.h"

namespace attune::gang {
namespace {

// Binds the socket to `address` with port 0; returns the port that the kernel chose, or 0 on
// failure.
template <class Address>
int Bind(const UniqueFd& socket, Address address, in_port_t Address::*port) {
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.*port);
}

}  // namespace

// Binds all addresses of the host, because c10d's store listens on all of them: IPv6 with IPv4
// included, or IPv4 alone if the host has no IPv6.
Result<HeldPort> HeldPort::Hold() {
  int number = 0;
  UniqueFd held(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (held) {
    number = Bind(held, sockaddr_in6{.sin6_family = AF_INET6, .sin6_addr = in6addr_any},
                  &sockaddr_in6::sin6_port);
  }
  if (number == 0) {
    held = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (held) {
      number = Bind(held, sockaddr_in{.sin_family = AF_INET, .sin_addr = {INADDR_ANY}},
                    &sockaddr_in::sin_port);
    }
  }
  if (number == 0) {
    return SystemError("no TCP port is free for the gang's MASTER_PORT", errno);
  }
  return HeldPort(std::move(held), number);
}

}  // namespace attune::gang

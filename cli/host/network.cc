#include "cli/host/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/result.h"

namespace attune::cli {
namespace {

constexpr size_t kHostNameBytesMax = 256;

std::string Numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return host.data();
}

// The local address of a datagram socket that is connected to `to`; empty if there is no route.
std::string LocalAddress(const addrinfo& to) {
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  std::string address;
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0) {
    address = Numeric(reinterpret_cast<sockaddr*>(&local), length);
  }
  close(fd);
  return address;
}

}  // namespace

std::string HostName() {
  std::array<char, kHostNameBytesMax> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::string AddBrackets(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

Result<std::string> AddressTowards(const std::string& target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == target.size()) {
    return Error{ErrorCode::kInvalid,
                 "--server: `" + target + "` is not HOST:PORT; `attune serve` prints it"};
  }
  std::string host = target.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), target.c_str() + colon + 1, &hints, &found);
  if (error != 0) {
    return Error{ErrorCode::kUnavailable,
                 "--server: cannot find " + target + ": " + gai_strerror(error)};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    if (std::string address = LocalAddress(*to); !address.empty()) return address;
  }
  return Error{ErrorCode::kUnavailable, "--server: there is no route to " + target};
}

}  // namespace attune::cli

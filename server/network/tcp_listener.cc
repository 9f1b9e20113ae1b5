#include "server/network/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace attune::server {
namespace {

constexpr int kBacklog = 1'024;  // connections that wait for accept()

Error CannotListen(const std::string& host, int port, const std::string& flag,
                   const std::string& reason, int system_error) {
  const std::string place = host + ":" + std::to_string(port);
  if (system_error == EADDRINUSE)
    return {ErrorCode::kUnavailable, "port " + std::to_string(port) + " of " + host +
                                         " is in use by another program; choose another with " +
                                         flag + ", or 0 for any free one"};
  if (system_error == EACCES)
    return {ErrorCode::kDenied,
            "not allowed to listen on " + place + "; choose a port above 1023 with " + flag};
  if (system_error == EADDRNOTAVAIL)
    return {ErrorCode::kUnavailable,
            "cannot listen on " + place + ": this host has no address " + host +
                (host == "127.0.0.1" ? "; add it with `ip addr add 127.0.0.1/8 dev lo`" : "")};
  return {ErrorCode::kUnavailable, "cannot listen on " + place + ": " + reason};
}

// Describes a listening socket. If its address is unknown, assumes that other machines can reach
// it.
TcpListener Describe(UniqueFd socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  TcpListener listener{.socket = std::move(socket)};
  if (::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return listener;
  if (address.ss_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    listener.port = ntohs(ipv6.sin6_port);
    listener.is_loopback = IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
  } else {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    listener.port = ntohs(ipv4.sin_port);
    listener.is_loopback = ntohl(ipv4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  return listener;
}

// Returns an invalid descriptor and sets errno if it fails.
UniqueFd Bind(const addrinfo& address) {
  UniqueFd socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           address.ai_protocol));
  if (!socket) return socket;
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket.get(), kBacklog) == 0)
    return socket;
  return {};
}

}  // namespace

Result<TcpListener> ListenTcp(const std::string& host, int port, const std::string& flag) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) return CannotListen(host, port, flag, ::gai_strerror(failure), 0);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int system_error = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    UniqueFd socket = Bind(*address);
    if (!socket) {
      system_error = errno;
      continue;
    }
    return Describe(std::move(socket));
  }
  return CannotListen(host, port, flag, std::strerror(system_error), system_error);
}

}  // namespace attune::server

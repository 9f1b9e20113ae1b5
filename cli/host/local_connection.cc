#include "cli/host/local_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "cli/host/listener.h"
#include "cli/joining.h"
#include "server/folder/server_socket.h"

namespace attune::cli {
namespace {

constexpr timeval kConnectTimeout{.tv_sec = 5, .tv_usec = 0};

// Sets errno if it fails.
UniqueFd ConnectTo(const addrinfo& address) {
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout, sizeof(kConnectTimeout));
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0)
    return {};
  return socket;
}

Result<UniqueFd> ConnectToTarget(const std::string& target) {
  const std::string host(HostOf(target));
  const std::string port = target.substr(target.rfind(':') + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failure = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); failure != 0)
    return Error{ErrorCode::kUnavailable, "cannot find " + target + ": " + gai_strerror(failure)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (UniqueFd socket = ConnectTo(*address)) return socket;
  }
  return Error{ErrorCode::kUnavailable,
               "cannot connect to " + target + ": " + std::strerror(errno)};
}

}  // namespace

Result<UniqueFd> ConnectToServerOf(const std::filesystem::path& data_dir) {
  const auto before = server::AskServer(data_dir);
  if (!before.ok()) return before.error();
  if (!IsLoopback(HostOf(before->rpc)))
    return Error{ErrorCode::kUnavailable,
                 "the server of " + data_dir.string() +
                     (before->rpc.empty() ? " does not listen for executors; start it with `attune "
                                            "serve` or `attune run --listen`"
                                          : " uses TLS now; start this executor again with the "
                                            "new DATA-DIR/join")};
  Result<UniqueFd> socket = ConnectToTarget(before->rpc);
  if (!socket.ok()) return socket;
  // The same server still runs, so it had its port when the connection was made.
  const auto after = server::AskServer(data_dir);
  if (!after.ok()) return after.error();
  if (*after != *before)
    return Error{ErrorCode::kUnavailable, "the server was restarting; try again"};
  return socket;
}

Result<UniqueFd> ConnectToOwnPort(const std::string& target) {
  Result<UniqueFd> socket = ConnectToTarget(target);
  if (!socket.ok()) return socket;
  const int port = std::atoi(target.substr(target.rfind(':') + 1).c_str());
  const std::vector<uid_t> users = UsersListeningOn(port);
  const auto is_other = [](uid_t user) { return user != geteuid() && user != 0; };
  if (users.empty()) return Error{ErrorCode::kUnavailable, "no program listens at " + target};
  if (std::ranges::any_of(users, is_other))
    return Error{ErrorCode::kDenied,
                 "a program of another user listens at " + target +
                     " and would get this executor's token; pass the file `join` of the server's "
                     "data folder with --token-file, or run both as the same user"};
  return socket;
}

}  // namespace attune::cli

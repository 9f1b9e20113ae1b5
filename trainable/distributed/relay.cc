#include "trainable/distributed/relay.h"

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address ListenAddress(const std::string& host) {
  Address address;
  if (host.empty()) {
    address.storage.ss_family = AF_UNIX;
    address.size = sizeof(sa_family_t);  // the kernel assigns an abstract name, without a file
    return address;
  }
  sockaddr_in tcp{};
  tcp.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &tcp.sin_addr) != 1) {
    throw Error("the gang's relay: " + host + " is not an IPv4 address to listen on");
  }
  std::memcpy(&address.storage, &tcp, sizeof(tcp));
  address.size = sizeof(tcp);
  return address;
}

UniqueFd Listen(Address address) {
  UniqueFd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) ThrowErrno("the gang's relay: socket");
  if (bind(socket.get(), address.get(), address.size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    ThrowErrno("the gang's relay: listening");
  }
  return socket;
}

std::vector<std::uint8_t> SocketName(const UniqueFd& socket) {
  Address address;
  if (getsockname(socket.get(), address.get(), &address.size) != 0) {
    ThrowErrno("the gang's relay: getsockname");
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&address.storage);
  return {bytes, bytes + address.size};
}

[[noreturn]] void ThrowLost(const char* role, const char* why) {
  throw c10::DistNetworkError(std::string("lost the ") + role +
                              " of this rank in the relay: " + why);
}

void Receive(const UniqueFd& socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_WAITALL);
    if (count == 0) ThrowLost("parent", "its connection has ended");
    if (count > 0) {
      bytes = bytes.subspan(count);
    } else if (errno != EINTR) {
      ThrowLost("parent", std::strerror(errno));
    }
  }
}

// Sends as much as the socket accepts now, and returns the number of bytes.
std::size_t SendAvailable(const UniqueFd& socket, std::span<const std::byte> bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += count;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      ThrowLost("child", std::strerror(errno));
    }
  }
  return sent;
}

// A secret of the gang's ranks that distinguishes them from other clients.
using Password = std::array<std::byte, 16>;

Password NewPassword() {
  Password password;
  if (getrandom(password.data(), password.size(), 0) != std::ssize(password)) {
    ThrowErrno("the gang's relay: getrandom");
  }
  return password;
}

// The entry of a rank in the store: the password, then the address of its socket.
std::vector<std::uint8_t> StoreEntry(const UniqueFd& listener, const Password& password) {
  std::vector<std::uint8_t> entry = SocketName(listener);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(password.data());
  entry.insert(entry.begin(), bytes, bytes + password.size());
  return entry;
}

// Connects to a rank, given its store entry. The socket is blocking, like all sockets of the relay.
UniqueFd ConnectTo(std::span<const std::uint8_t> entry) {
  const auto password = std::as_bytes(entry.first(sizeof(Password)));
  const auto name = entry.subspan(sizeof(Password));
  Address address;
  address.size = std::min<socklen_t>(name.size(), sizeof(address.storage));
  std::memcpy(&address.storage, name.data(), address.size);
  UniqueFd socket = Connect(address.get(), address.size, Clock::time_point::max());
  if (!socket.valid() || fcntl(socket.get(), F_SETFL, 0) != 0 ||
      send(socket.get(), password.data(), password.size(), MSG_NOSIGNAL) != std::ssize(password)) {
    ThrowLost("parent", std::strerror(errno));
  }
  return socket;
}

bool SendsPassword(const UniqueFd& socket, const Password& password) {
  constexpr timeval kPasswordTimeout{.tv_sec = 2, .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPasswordTimeout, sizeof(kPasswordTimeout));
  Password received{};
  return recv(socket.get(), received.data(), received.size(), MSG_WAITALL) ==
             std::ssize(received) &&
         received == password;
}

UniqueFd Accept(const UniqueFd& listener, const Password& password) {
  while (true) {
    UniqueFd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno != EINTR && errno != ECONNABORTED) ThrowErrno("the gang's relay: accept");
      continue;
    }
    if (!SendsPassword(socket, password)) continue;
    const int on = 1;  // not supported and not needed by a Unix socket
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return socket;
  }
}

}  // namespace

// The parent of rank r is r without its highest bit. Its children are r + 2^k for each 2^k above r.
Relay::Relay(c10d::Store& store, int rank, int world_size, const std::string& host) {
  const auto key = [](int owner) { return "relay/" + std::to_string(owner); };
  std::vector<int> child_ranks;
  for (unsigned bit = std::bit_floor(static_cast<unsigned>(rank)) * 2 + (rank == 0);
       rank + static_cast<int>(bit) < world_size; bit *= 2) {
    child_ranks.push_back(rank + static_cast<int>(bit));
  }
  UniqueFd listener;
  Password password{};
  if (!child_ranks.empty()) {
    listener = Listen(ListenAddress(host));
    password = NewPassword();
    store.set(key(rank), StoreEntry(listener, password));
  }
  if (rank > 0) {
    const unsigned highest = std::bit_floor(static_cast<unsigned>(rank));
    parent_ = ConnectTo(store.get(key(rank - static_cast<int>(highest))));
  }
  while (children_.size() < child_ranks.size()) {
    children_.push_back({Accept(listener, password), {}});
  }
}

void Relay::Broadcast(std::span<std::byte> bytes) {
  if (parent_.valid()) Receive(parent_, bytes);
  for (auto& [socket, unsent] : children_) {
    unsent.insert(unsent.end(), bytes.begin(), bytes.end());
    unsent.erase(unsent.begin(), unsent.begin() + SendAvailable(socket, unsent));
  }
}

void Relay::Leave() {
  // The connection stays open, so that the parent can still send.
  const char farewell = 0;
  if (parent_.valid()) send(parent_.get(), &farewell, sizeof(farewell), MSG_NOSIGNAL);
  for (const auto& [socket, unsent] : children_) {
    std::span<const std::byte> left = unsent;
    while (!left.empty()) {
      pollfd polled{socket.get(), POLLIN | POLLOUT, 0};
      if (poll(&polled, 1, -1) < 0) continue;  // EINTR
      // The child has left, or its connection has ended.
      if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0) break;
      left = left.subspan(SendAvailable(socket, left));
    }
  }
}

bool Relay::HasMessage(std::chrono::milliseconds timeout) const {
  if (!parent_.valid()) return true;
  pollfd polled{parent_.get(), POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(timeout.count())) != 0;
}

}  // namespace attune::inline sdk::trainable

#include "trainable/distributed/relay.h"

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "attune/error.h"

namespace attune::trainable {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address AnyOf(const std::string& host) {
  Address address;
  if (host.empty()) {
    address.storage.ss_family = AF_UNIX;
    address.size = sizeof(sa_family_t);  // the kernel finds a name, which no file bears
    return address;
  }
  sockaddr_in tcp{};
  tcp.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &tcp.sin_addr) != 1) {
    throw Error("the gang's relay: " + host + " is no IPv4 address to listen on");
  }
  std::memcpy(&address.storage, &tcp, sizeof(tcp));
  address.size = sizeof(tcp);
  return address;
}

UniqueFd NewSocket(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) ThrowErrno("the gang's relay: socket");
  return socket;
}

UniqueFd Listen(Address address) {
  UniqueFd socket = NewSocket(address.storage.ss_family);
  if (bind(socket.get(), address.get(), address.size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    ThrowErrno("the gang's relay: listening");
  }
  return socket;
}

std::vector<std::uint8_t> NameOf(const UniqueFd& socket) {
  Address address;
  if (getsockname(socket.get(), address.get(), &address.size) != 0) {
    ThrowErrno("the gang's relay: getsockname");
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&address.storage);
  return {bytes, bytes + address.size};
}

UniqueFd Connect(const std::vector<std::uint8_t>& name) {
  Address address;
  address.size = std::min<socklen_t>(name.size(), sizeof(address.storage));
  std::memcpy(&address.storage, name.data(), address.size);
  UniqueFd socket = NewSocket(address.storage.ss_family);
  while (connect(socket.get(), address.get(), address.size) != 0) {
    if (errno != EINTR) ThrowErrno("the gang's relay: connecting");
  }
  return socket;
}

UniqueFd Accept(const UniqueFd& listener) {
  while (true) {
    UniqueFd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.valid()) {
      const int on = 1;  // which a Unix socket refuses, and does without
      setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    if (errno != EINTR && errno != ECONNABORTED) ThrowErrno("the gang's relay: accept");
  }
}

[[noreturn]] void Lose(const char* which, const char* why) {
  throw c10::DistNetworkError(std::string("the rank ") + which +
                              " this one does not follow the gang any more: " + why);
}

void Receive(const UniqueFd& socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_WAITALL);
    if (count == 0) Lose("before", "its connection has ended");
    if (count > 0) {
      bytes = bytes.subspan(count);
    } else if (errno != EINTR) {
      Lose("before", std::strerror(errno));
    }
  }
}

void Send(const UniqueFd& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(count);
    } else if (errno != EINTR) {
      Lose("behind", std::strerror(errno));
    }
  }
}

}  // namespace

// Rank r has its word from the rank without r's highest bit, so that r and 2^k are the ranks that
// rank r tells, for each 2^k above r.
Relay::Relay(c10d::Store& store, int rank, int world_size, const std::string& host) {
  const auto key = [](int of) { return "relay/" + std::to_string(of); };
  std::vector<int> told;
  for (unsigned bit = std::bit_floor(static_cast<unsigned>(rank)) * 2 + (rank == 0);
       rank + static_cast<int>(bit) < world_size; bit *= 2) {
    told.push_back(rank + static_cast<int>(bit));
  }
  UniqueFd listener;
  if (!told.empty()) {
    listener = Listen(AnyOf(host));
    store.set(key(rank), NameOf(listener));
  }
  if (rank > 0) {
    const unsigned highest = std::bit_floor(static_cast<unsigned>(rank));
    from_ = Connect(store.get(key(rank - static_cast<int>(highest))));
  }
  while (to_.size() < told.size()) to_.push_back(Accept(listener));
}

void Relay::Tell(std::span<std::byte> bytes) {
  if (from_.valid()) Receive(from_, bytes);
  for (const UniqueFd& socket : to_) Send(socket, bytes);
}

}  // namespace attune::trainable

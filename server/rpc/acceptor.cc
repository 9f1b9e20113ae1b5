#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/server_builder.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace attune::server {
namespace {

// The values of epoll events. Connections have larger numbers.
constexpr uint64_t kWake = 0;
constexpr uint64_t kListener = 1;
constexpr int kEventsAtOnce = 64;
constexpr int kAcceptAtOnce = 64;
constexpr int kRetryMs = 100;  // until the next attempt, when the process has no descriptors left

// ADDRESS:PORT, in the form that PeerOf returns.
std::string NameOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(ipv4.sin_port));
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  const std::string port = std::to_string(ntohs(ipv6.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    ::inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], text.data(), text.size());
    return std::string(text.data()) + ":" + port;
  }
  ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + port;
}

// Converts a peer's name from gRPC's form: `ipv4:127.0.0.1:1` to `127.0.0.1:1`, and
// `ipv6:%5B::1%5D:1` to `[::1]:1`.
std::string PeerOf(std::string_view grpc_peer) {
  std::string peer(grpc_peer.substr(std::min(grpc_peer.find(':') + 1, grpc_peer.size())));
  if (const size_t open = peer.find("%5B"); open != peer.npos) peer.replace(open, 3, "[");
  if (const size_t close = peer.find("%5D"); close != peer.npos) peer.replace(close, 3, "]");
  return peer;
}

uint64_t BytesReceived(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received
                                                                        : 0;
}

}  // namespace

Acceptor::Acceptor(UniqueFd listener, Limits limits,
                   std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc)
    : limits_(limits),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      to_grpc_(std::move(to_grpc)),
      unauthenticated_(limits.unauthenticated),
      last_id_(kListener) {
  ATTUNE_CHECK(epoll_ && wake_);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  ATTUNE_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ATTUNE_CHECK(::eventfd_write(wake_.get(), 1) == 0);
  thread_.join();
}

void Acceptor::Listen(bool on) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kListener}};
  listening_ =
      ::epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event) == 0 &&
      on;
}

void Acceptor::Run() {
  std::array<epoll_event, kEventsAtOnce> events{};
  for (;;) {
    if (!listening_) Listen(true);
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, listening_ ? -1 : kRetryMs);
    bool accept = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if (event.data.u64 == kListener) accept = true;
        if (event.data.u64 > kListener) OnEvent(event.data.u64, event.events);
      }
    }
    if (accept) AcceptAll();
  }
}

void Acceptor::AcceptAll() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    UniqueFd socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      Accept(std::move(socket), NameOf(address));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return Listen(false);  // No descriptors are left. Run tries again.
    }
  }
}

void Acceptor::Accept(UniqueFd socket, const std::string& peer) {
  UniqueFd own(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!own) return;
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  {
    const std::lock_guard lock(mutex_);
    const Id id = ++last_id_;
    // Edge-triggered: each arrival of bytes is an event, whether or not gRPC has read them.
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u64 = id}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, own.get(), &event) != 0) return;
    connections_.emplace(id, Connection{.socket = std::move(own), .peer = peer});
    by_peer_[peer] = id;
    if (const auto closed = unauthenticated_.Add(id)) ShutDown(*closed);
  }
  // Without the lock: gRPC may run a callback, which may call Authenticate.
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener_.get();
  connection.fd = socket.release();
  to_grpc_->HandleNewConnection(&connection);
}

void Acceptor::OnEvent(Id id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) return Forget(id);
  if (!found->second.authenticated &&
      BytesReceived(found->second.socket.get()) > limits_.unauthenticated_bytes)
    ShutDown(id);
}

bool Acceptor::Authenticate(const std::string& grpc_peer) {
  const std::lock_guard lock(mutex_);
  const auto known = by_peer_.find(PeerOf(grpc_peer));
  if (known == by_peer_.end()) return true;
  Connection& connection = connections_.at(known->second);
  if (connection.authenticated) return true;
  if (authenticated_ >= limits_.authenticated) return false;
  connection.authenticated = true;
  ++authenticated_;
  unauthenticated_.Remove(known->second);
  epoll_event event{.events = EPOLLRDHUP | EPOLLET, .data = {.u64 = known->second}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
  return true;
}

void Acceptor::ShutDown(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  ::shutdown(found->second.socket.get(), SHUT_RDWR);
  Forget(id);
}

void Acceptor::Forget(Id id) {
  const auto found = connections_.find(id);
  // Closing the descriptor is not enough: gRPC's descriptor keeps the socket open.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.socket.get(), nullptr);
  unauthenticated_.Remove(id);
  if (found->second.authenticated) --authenticated_;
  if (const auto named = by_peer_.find(found->second.peer);
      named != by_peer_.end() && named->second == id)
    by_peer_.erase(named);
  connections_.erase(found);
}

}  // namespace attune::server

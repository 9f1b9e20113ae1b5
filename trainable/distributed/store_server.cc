#include "trainable/distributed/store_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "attune/error.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

using Kind = StoreMessage::Kind;

UniqueFd Listen(const std::string& host) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) ThrowErrno("the gang's store: socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw Error("the gang's store: " + host + " is not an IPv4 address to listen on");
  }
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    ThrowErrno("the gang's store: listening on " + host);
  }
  return socket;
}

std::uint16_t PortOf(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ThrowErrno("the gang's store: getsockname");
  }
  return ntohs(address.sin_port);
}

StoreMessage Done(std::int64_t amount = 0) { return {.kind = Kind::kDone, .amount = amount}; }

StoreMessage RefusalMessage(std::string why) {
  return {.kind = Kind::kRefused, .values = {std::move(why)}};
}

StoreMessage TooLong(const std::string& what, std::size_t bytes, std::size_t bytes_max) {
  return RefusalMessage(what + " of " + std::to_string(bytes) + " bytes; at most " +
                        std::to_string(bytes_max) + " are allowed");
}

// Whether a request has the numbers of keys and values that its kind needs.
bool HasExpectedFields(const StoreMessage& request) {
  const std::size_t keys = request.keys.size(), values = request.values.size();
  switch (request.kind) {
    case Kind::kSet:
      return keys == values;
    case Kind::kWait:
    case Kind::kGet:
    case Kind::kCheck:
      return values == 0;
    case Kind::kAdd:
    case Kind::kDelete:
      return keys == 1 && values == 0;
    case Kind::kAppend:
      return keys == 1 && values == 1;
    case Kind::kCompareSet:
      return keys == 1 && values == 2;
    case Kind::kCount:
      return keys == 0 && values == 0;
    case Kind::kDone:
    case Kind::kRefused:
      return false;
  }
  return false;
}

}  // namespace

StoreServer::StoreServer(const std::string& host)
    : listener_(Listen(host)),
      port_(PortOf(listener_)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_.valid()) ThrowErrno("the gang's store: eventfd");
  thread_ = std::thread(&StoreServer::Run, this);
}

StoreServer::~StoreServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void StoreServer::Run() {
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{stop_.get(), POLLIN, 0}, {has_descriptors_ ? listener_.get() : -1, POLLIN, 0}});
    for (const auto& [fd, connection] : connections_) {
      polled.push_back({fd, static_cast<short>(connection.out.empty() ? POLLIN : POLLOUT), 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR is its only error here
    if (polled[0].revents != 0) return;
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) Serve(connections_.at(polled[i].fd));
    }
    if (std::erase_if(connections_, [](const auto& entry) { return entry.second.is_closed; }) > 0) {
      has_descriptors_ = true;
    }
    if (polled[1].revents != 0) Accept();
  }
}

void StoreServer::Accept() {
  while (true) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      // A client that cannot be accepted now waits until another connection closes.
      has_descriptors_ = errno != EMFILE && errno != ENFILE;
      return;
    }
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const int fd = socket.get();
    connections_[fd].socket = std::move(socket);
  }
}

void StoreServer::Serve(Connection& connection) {
  if (connection.is_closed) return;
  if (connection.out.empty()) {
    Receive(connection);
  } else {
    SendSome(connection.socket.get(), connection.out);
  }
  try {
    while (!connection.is_closed && connection.out.empty()) {
      auto request = connection.in.Next();
      if (!request) return;
      Handle(connection, std::move(*request));
    }
  } catch (const Error&) {
    Close(connection);
  }
}

void StoreServer::Receive(Connection& connection) {
  std::array<char, kStoreReadBytes> bytes;
  const ssize_t count = recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (count > 0) {
    connection.in.Append({bytes.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    Close(connection);
  }
}

void StoreServer::Close(Connection& connection) {
  EndWait(connection);
  connection.is_closed = true;  // it may still be in the list of polled descriptors
}

void StoreServer::Handle(Connection& connection, StoreMessage request) {
  if (!HasExpectedFields(request))
    throw Error("the gang's store: a request with a wrong number of keys or values");
  EndWait(connection);
  for (const std::string& key : request.keys) {
    if (key.size() > kStoreKeyBytesMax) {
      return Reply(connection, request, TooLong("a key", key.size(), kStoreKeyBytesMax));
    }
  }
  for (const std::string& value : request.values) {
    if (value.size() > kStoreValueBytesMax) {
      return Reply(connection, request, TooLong("a value", value.size(), kStoreValueBytesMax));
    }
  }
  if (request.kind == Kind::kWait || request.kind == Kind::kGet) {
    connection.wait.emplace().request = std::move(request);
    return ContinueWait(connection);
  }
  Reply(connection, request, Answer(request));
}

StoreMessage StoreServer::Answer(const StoreMessage& request) {
  if (request.kind == Kind::kCount) return Done(std::ssize(values_));
  if (request.kind == Kind::kCheck) {
    return Done(std::ranges::all_of(
        request.keys, [this](const std::string& key) { return values_.contains(key); }));
  }
  if (request.kind == Kind::kSet) {
    for (std::size_t i = 0; i < request.keys.size(); ++i) Set(request.keys[i], request.values[i]);
    return Done();
  }

  const std::string& key = request.keys[0];
  const auto found = values_.find(key);
  std::string value = found == values_.end() ? "" : found->second;
  switch (request.kind) {
    case Kind::kDelete:
      return Done(static_cast<std::int64_t>(values_.erase(key)));
    case Kind::kAppend:
      value += request.values[0];
      if (value.size() > kStoreValueBytesMax) {
        return TooLong("a value", value.size(), kStoreValueBytesMax);
      }
      Set(key, std::move(value));
      return Done();
    case Kind::kCompareSet: {
      const std::string& expected = request.values[0];
      StoreMessage answer = Done();
      if (value == expected && (found != values_.end() || expected.empty())) {
        Set(key, request.values[1]);
        answer.values = {request.values[1]};
      } else {
        answer.values = {found != values_.end() ? std::move(value) : expected};
      }
      return answer;
    }
    default: {  // kAdd
      std::int64_t amount = 0;
      const char* end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, amount);
      const bool is_number = found == values_.end() || (read.ec == std::errc() && read.ptr == end);
      if (!is_number || __builtin_add_overflow(amount, request.amount, &amount)) {
        return RefusalMessage("cannot add " + std::to_string(request.amount) + " to " +
                              (is_number ? value : "a value that is not a 64-bit integer"));
      }
      Set(key, std::to_string(amount));
      return Done(amount);
    }
  }
}

void StoreServer::Set(const std::string& key, std::string value) {
  values_[key] = std::move(value);
  const auto waiting = connections_waiting_.extract(key);
  if (waiting.empty()) return;
  for (const int fd : waiting.mapped()) ContinueWait(connections_.at(fd));
}

void StoreServer::ContinueWait(Connection& connection) {
  Wait& wait = *connection.wait;
  const std::vector<std::string>& keys = wait.request.keys;
  const auto is_missing = [this](const std::string& key) { return !values_.contains(key); };
  auto next =
      std::find_if(keys.begin() + static_cast<std::ptrdiff_t>(wait.next), keys.end(), is_missing);
  const bool wants_values = wait.request.kind == Kind::kGet;
  // A key that existed before may have been deleted.
  if (next == keys.end() && wants_values) next = std::find_if(keys.begin(), keys.end(), is_missing);
  if (next != keys.end()) {
    wait.next = next - keys.begin();
    connections_waiting_[*next].push_back(connection.socket.get());
    return;
  }
  StoreMessage answer = wants_values ? Values(keys) : Done();
  const StoreMessage request = std::move(wait.request);
  connection.wait.reset();
  Reply(connection, request, std::move(answer));
}

StoreMessage StoreServer::Values(const std::vector<std::string>& keys) const {
  StoreMessage answer = Done();
  std::size_t bytes = 0;
  for (const std::string& key : keys) {
    const std::string& value = answer.values.emplace_back(values_.at(key));
    bytes += value.size() + sizeof(std::uint32_t);
    if (bytes > kStoreMessageBytesMax / 2) {
      return RefusalMessage(std::to_string(keys.size()) + " values have more than " +
                            std::to_string(kStoreMessageBytesMax / 2) +
                            " bytes; ask for fewer at once");
    }
  }
  return answer;
}

void StoreServer::EndWait(Connection& connection) {
  if (!connection.wait) return;
  const auto waiting =
      connections_waiting_.find(connection.wait->request.keys[connection.wait->next]);
  std::erase(waiting->second, connection.socket.get());
  if (waiting->second.empty()) connections_waiting_.erase(waiting);
  connection.wait.reset();
}

void StoreServer::Reply(Connection& connection, const StoreMessage& request, StoreMessage answer) {
  answer.number = request.number;
  connection.out += ToBytes(answer);
  SendSome(connection.socket.get(), connection.out);
}

}  // namespace attune::inline sdk::trainable

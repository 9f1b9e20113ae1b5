#include "trainable/distributed/gang_store.h"

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "attune/error.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;

Clock::time_point DeadlineOf(milliseconds timeout) {
  constexpr milliseconds kTimeoutMax = std::chrono::years(1);
  return timeout == c10d::Store::kNoTimeout || timeout > kTimeoutMax ? Clock::time_point::max()
                                                                     : Clock::now() + timeout;
}

std::string AddressText(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.sin_port));
}

std::string ToString(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint8_t> ToVector(const std::string& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

sockaddr_in StoreAddress(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;  // the server listens on IPv4
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  int failed = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failed == EAI_NONAME) {
    hints.ai_flags = 0;
    failed = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  }
  if (failed != 0) {
    throw Error("rendezvous: host " + host + ", of rank 0: " + gai_strerror(failed) +
                "; make the name resolvable on every host of the gang");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  sockaddr_in address{};
  std::memcpy(&address, list->ai_addr, std::min<std::size_t>(list->ai_addrlen, sizeof(address)));
  address.sin_port = htons(port);
  return address;
}

GangStore::GangStore(const sockaddr_in& address, milliseconds timeout)
    : Store(timeout),
      address_(address),
      socket_(Connect(reinterpret_cast<const sockaddr*>(&address_), sizeof(address_),
                      DeadlineOf(timeout))) {
  if (!socket_.valid()) FailConnection(std::strerror(errno));
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

c10::intrusive_ptr<c10d::Store> GangStore::clone() {
  return c10::make_intrusive<GangStore>(address_, timeout_);
}

void GangStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  Call({.kind = Kind::kSet, .keys = {key}, .values = {ToString(value)}}, timeout_);
}

std::vector<std::uint8_t> GangStore::compareSet(const std::string& key,
                                                const std::vector<std::uint8_t>& expected,
                                                const std::vector<std::uint8_t>& desired) {
  const StoreMessage answer = Call(
      {.kind = Kind::kCompareSet, .keys = {key}, .values = {ToString(expected), ToString(desired)}},
      timeout_);
  return ToVector(answer.values.at(0));
}

std::vector<std::uint8_t> GangStore::get(const std::string& key) {
  return std::move(multiGet({key}).at(0));
}

std::int64_t GangStore::add(const std::string& key, std::int64_t value) {
  return Call({.kind = Kind::kAdd, .amount = value, .keys = {key}}, timeout_).amount;
}

bool GangStore::deleteKey(const std::string& key) {
  return Call({.kind = Kind::kDelete, .keys = {key}}, timeout_).amount != 0;
}

bool GangStore::check(const std::vector<std::string>& keys) {
  return Call({.kind = Kind::kCheck, .keys = keys}, timeout_).amount != 0;
}

std::int64_t GangStore::getNumKeys() { return Call({.kind = Kind::kCount}, timeout_).amount; }

void GangStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void GangStore::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  Call({.kind = Kind::kWait, .keys = keys}, timeout);
}

void GangStore::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  Call({.kind = Kind::kAppend, .keys = {key}, .values = {ToString(value)}}, timeout_);
}

std::vector<std::vector<std::uint8_t>> GangStore::multiGet(const std::vector<std::string>& keys) {
  std::vector<std::vector<std::uint8_t>> values;
  for (const std::string& value : Call({.kind = Kind::kGet, .keys = keys}, timeout_).values) {
    values.push_back(ToVector(value));
  }
  return values;
}

void GangStore::multiSet(const std::vector<std::string>& keys,
                         const std::vector<std::vector<std::uint8_t>>& values) {
  if (keys.size() != values.size()) {
    throw Error("multiSet: " + std::to_string(values.size()) + " values for " +
                std::to_string(keys.size()) + " keys; it takes one for each");
  }
  StoreMessage request{.kind = Kind::kSet, .keys = keys};
  for (const auto& value : values) request.values.push_back(ToString(value));
  Call(std::move(request), timeout_);
}

StoreMessage GangStore::Call(StoreMessage request, milliseconds timeout) {
  const std::lock_guard lock(calling_);
  if (!socket_) FailConnection("the connection was lost before");
  const Clock::time_point deadline = DeadlineOf(timeout);
  request.number = ++calls_;
  Send(ToBytes(request), deadline);
  while (true) {
    std::optional<StoreMessage> answer;
    try {
      answer = reader_.Next();
    } catch (const Error& error) {
      FailConnection(error.what());
    }
    if (!answer) {
      if (!Poll(socket_, POLLIN, deadline)) {
        throw c10::DistStoreError(
            "the gang's store: no answer within " + std::to_string(timeout.count()) + " ms" +
            (request.keys.empty() ? "" : " for key " + request.keys.front()) +
            (request.keys.size() > 1 ? " and " + std::to_string(request.keys.size() - 1) + " more"
                                     : ""));
      }
      Receive();
    } else if (answer->number == request.number) {
      if (answer->kind == Kind::kDone) return std::move(*answer);
      throw Error("the gang's store: " + answer->values.at(0));
    }  // otherwise it is the late answer to a call that timed out
  }
}

void GangStore::Send(std::string bytes, Clock::time_point deadline) {
  if (bytes.size() > kStoreMessageBytesMax) {
    throw Error("the gang's store: a request of " + std::to_string(bytes.size()) +
                " bytes; at most " + std::to_string(kStoreMessageBytesMax) + " are allowed");
  }
  while (true) {
    SendSome(socket_.get(), bytes);
    if (bytes.empty()) return;
    // A partly sent request cannot be withdrawn.
    if (!Poll(socket_, POLLOUT, deadline)) FailConnection("it accepts no more data");
  }
}

void GangStore::Receive() {
  std::array<char, kStoreReadBytes> bytes;
  const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count > 0) {
    reader_.Append({bytes.data(), static_cast<std::size_t>(count)});
  } else if (count == 0) {
    FailConnection("the connection has ended");
  } else if (errno != EAGAIN && errno != EINTR) {
    FailConnection(std::strerror(errno));
  }
}

void GangStore::FailConnection(const std::string& why) {
  socket_.reset();
  throw c10::DistNetworkError("the gang's store of rank 0 at " + AddressText(address_) + ": " +
                              why);
}

}  // namespace attune::inline sdk::trainable

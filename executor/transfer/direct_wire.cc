#include "executor/transfer/direct_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/result.h"
#include "system/random_word.h"
#include "system/sha256.h"
#include "system/system_error.h"

namespace attune::agent {

namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kMacBytes = 32;
constexpr size_t kSizeBytes = 4;
constexpr int kBacklog = 64;

std::optional<sockaddr_in> Parse(const std::string& address, uint16_t port) {
  sockaddr_in parsed{};
  parsed.sin_family = AF_INET;
  parsed.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &parsed.sin_addr) != 1) return std::nullopt;
  return parsed;
}

timeval ToTimeval(std::chrono::milliseconds duration) {
  return {.tv_sec = duration.count() / 1000, .tv_usec = duration.count() % 1000 * 1000};
}

bool Send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<std::string> ReceiveText(int socket, size_t count) {
  std::string bytes(count, '\0');
  if (!Receive(socket, bytes.data(), count)) return std::nullopt;
  return bytes;
}

// The text whose MAC each end computes with the key.
std::string FetcherText(const std::string& nonces) { return "fetch" + nonces; }
std::string SenderText(const std::string& nonces) { return "serve" + nonces; }

}  // namespace

std::string RandomKey() { return RandomBytes(kDirectKeyBytes); }

void SetTimeouts(int socket, std::chrono::milliseconds receive, std::chrono::milliseconds send) {
  const timeval receiving = ToTimeval(receive), sending = ToTimeval(send);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &receiving, sizeof receiving);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &sending, sizeof sending);
}

Result<Listener> Listen(const std::string& address) {
  std::optional<sockaddr_in> at = Parse(address, 0);
  if (!at) return Invalid(address + " is not an IPv4 address");
  Listener listener{NewSocket()};
  socklen_t size = sizeof *at;
  if (!listener.socket ||
      bind(listener.socket.get(), reinterpret_cast<const sockaddr*>(&*at), size) != 0 ||
      listen(listener.socket.get(), kBacklog) != 0 ||
      getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&*at), &size) != 0)
    return SystemError("cannot listen at " + address, errno);
  listener.port = ntohs(at->sin_port);
  return listener;
}

UniqueFd NewSocket() { return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

bool Connect(int socket, const std::string& address, uint16_t port) {
  const std::optional<sockaddr_in> to = Parse(address, port);
  const int on = 1;
  return to && connect(socket, reinterpret_cast<const sockaddr*>(&*to), sizeof *to) == 0 &&
         setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

bool AuthenticateFetcher(int socket, std::string_view key) {
  const std::string own = RandomBytes(kNonceBytes);
  if (!Send(socket, own)) return false;
  const auto theirs = ReceiveText(socket, kNonceBytes + kMacBytes);
  if (!theirs) return false;
  const std::string nonces = own + theirs->substr(0, kNonceBytes);
  return IsHmacSha256(theirs->substr(kNonceBytes), key, FetcherText(nonces)) &&
         Send(socket, HmacSha256(key, SenderText(nonces)));
}

bool AuthenticateSender(int socket, std::string_view key) {
  const auto theirs = ReceiveText(socket, kNonceBytes);
  if (!theirs) return false;
  const std::string own = RandomBytes(kNonceBytes);
  if (!Send(socket, own + HmacSha256(key, FetcherText(*theirs + own)))) return false;
  const auto mac = ReceiveText(socket, kMacBytes);
  return mac && IsHmacSha256(*mac, key, SenderText(*theirs + own));
}

bool SendMessage(int socket, const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  if (text.size() > kDirectMessageBytesMax) return false;
  const uint32_t size = htonl(static_cast<uint32_t>(text.size()));
  std::string bytes(kSizeBytes, '\0');
  std::memcpy(bytes.data(), &size, kSizeBytes);
  return Send(socket, bytes + text);
}

bool ReceiveMessage(int socket, google::protobuf::MessageLite& message) {
  uint32_t size = 0;
  if (!Receive(socket, reinterpret_cast<char*>(&size), kSizeBytes)) return false;
  size = ntohl(size);
  if (size > kDirectMessageBytesMax) return false;
  const auto text = ReceiveText(socket, size);
  return text && message.ParseFromString(*text);
}

// A short read means that the timeout has expired or the peer is gone. recv() with a count of 0
// would block for nothing.
bool Receive(int socket, char* bytes, size_t count) {
  if (count == 0) return true;
  ssize_t received = 0;
  do {
    received = recv(socket, bytes, count, MSG_WAITALL);
  } while (received < 0 && errno == EINTR);
  return received >= 0 && static_cast<size_t>(received) == count;
}

}  // namespace attune::agent

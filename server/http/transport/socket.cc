#include "server/http/transport/socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace attune::server {
namespace {

// The answer to HTTP on an HTTPS port; people may type the wrong scheme.
constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    "Content-Length: 44\r\n\r\nthis port speaks HTTPS: ask for https://…\n";

int AtMost(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      tls_(std::exchange(other.tls_, nullptr)),
      wants_write_(other.wants_write_) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(tls_, other.tls_);
  std::swap(wants_write_, other.wants_write_);
  return *this;
}

Socket::~Socket() {
  SSL_free(tls_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

ssize_t Socket::Receive(char* to, size_t size) {
  if (tls_ == nullptr) return ::recv(descriptor_, to, size, MSG_DONTWAIT);
  ERR_clear_error();
  wants_write_ = false;
  const int count = SSL_read(tls_, to, AtMost(size));
  return count > 0 ? count : Failed(count);
}

ssize_t Socket::Send(const char* from, size_t size) {
  if (tls_ == nullptr) return ::send(descriptor_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  ERR_clear_error();
  const int count = SSL_write(tls_, from, AtMost(size));
  if (count > 0) return count;
  if (Failed(count) == 0) errno = EPIPE;
  return -1;
}

void Socket::EndSending() {
  if (tls_ != nullptr && SSL_is_init_finished(tls_)) SSL_shutdown(tls_);
  ERR_clear_error();
  ::shutdown(descriptor_, SHUT_WR);
}

// Converts a failed result of OpenSSL to errno.
ssize_t Socket::Failed(int result) {
  const int error = SSL_get_error(tls_, result);
  wants_write_ = error == SSL_ERROR_WANT_WRITE;
  switch (error) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SSL:
      if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
        ::send(descriptor_, kSpeakTls.data(), kSpeakTls.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      break;
    default:
      break;
  }
  ERR_clear_error();
  errno = ECONNRESET;
  return -1;
}

}  // namespace attune::server

#pragma once

#include <sys/types.h>

#include <cstddef>

using SSL = struct ssl_st;

namespace attune::server {

// One end of an accepted connection, with or without TLS. No method waits. Only one thread may use
// it at a time.
//
// OpenSSL cannot suppress SIGPIPE, so the process must ignore that signal.
class Socket {
 public:
  Socket() = default;
  // Takes ownership of both. `tls`: null without TLS.
  Socket(int descriptor, SSL* tls) : descriptor_(descriptor), tls_(tls) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_secure() const { return tls_ != nullptr; }

  // Like recv and send: return the number of bytes; 0 from Receive at the end; -1 with errno.
  // EAGAIN: nothing can be received or sent now.
  ssize_t Receive(char* to, size_t size);
  ssize_t Send(const char* from, size_t size);
  // Whether the last call failed because TLS must write first, even for a Receive.
  bool wants_write() const { return wants_write_; }
  // Tells the client that nothing more follows.
  void EndSending();

 private:
  ssize_t Failed(int result);

  int descriptor_ = -1;
  SSL* tls_ = nullptr;
  bool wants_write_ = false;
};

}  // namespace attune::server

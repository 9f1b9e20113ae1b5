#pragma once

#include <sys/types.h>

#include <cstddef>

using SSL = struct ssl_st;

namespace attune::server {

// One end of an accepted connection, in clear or in TLS. Nothing here waits. One thread at a time.
//
// TLS writes without a way to keep SIGPIPE from the process, which has to ignore it.
class Socket {
 public:
  Socket() = default;
  // Takes both. `tls`: null where the connection is in clear.
  Socket(int descriptor, SSL* tls) : descriptor_(descriptor), tls_(tls) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_secure() const { return tls_ != nullptr; }

  // As recv and send: how many bytes; 0, of Receive, at the end; -1 with errno, EAGAIN where there
  // is nothing to be had or no room now.
  ssize_t Receive(char* to, size_t size);
  ssize_t Send(const char* from, size_t size);
  // Whether the last call came to nothing for want of room, not of bytes: TLS writes to read.
  bool wants_room() const { return wants_room_; }
  // Says that nothing more comes.
  void EndSending();

 private:
  ssize_t Failed(int result);

  int descriptor_ = -1;
  SSL* tls_ = nullptr;
  bool wants_room_ = false;
};

}  // namespace attune::server

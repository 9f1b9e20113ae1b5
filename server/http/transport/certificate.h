#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace attune::server {

// What a server shows to those who ask for it by HTTPS: a certificate and its key, from two files
// in PEM, which are read again when they have changed. Any thread.
class Certificate {
 public:
  // kInvalid, with what is wrong with which file, when TLS cannot be spoken with them.
  static Result<std::shared_ptr<Certificate>> Load(std::filesystem::path certificate,
                                                   std::filesystem::path key);
  ~Certificate();

  // The server's end of TLS on an accepted socket, which the caller frees; null when there is no
  // memory.
  SSL* Accept(int socket);

  // Whether a name or address, one of IPv6 in brackets, is in it.
  bool IsFor(std::string_view host) const;
  // The first name in it that is no pattern; empty when there is none.
  std::string Name() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Stamp = std::array<int64_t, 6>;  // of both files: which they are, and when they changed

  Certificate(std::filesystem::path certificate, std::filesystem::path key);
  Status Read();
  Stamp Now() const;

  const std::filesystem::path certificate_;
  const std::filesystem::path key_;
  mutable std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Stamp read_{};
  Stamp refused_{};  // of files that could not be used
  Clock::time_point again_;
};

}  // namespace attune::server

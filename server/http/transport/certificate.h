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

// The certificate and key for HTTPS, from two PEM files that are read again when they have changed.
// Any thread.
class Certificate {
 public:
  // Loads the files. kInvalid, with the file and the reason, if they cannot be used for TLS.
  static Result<std::shared_ptr<Certificate>> Load(std::filesystem::path certificate,
                                                   std::filesystem::path key);
  ~Certificate();

  // Creates the server's end of TLS on an accepted socket; the caller frees it. Null if memory is
  // exhausted.
  SSL* Accept(int socket);

  // Whether the certificate contains a name or address. IPv6 addresses are in brackets.
  bool IsFor(std::string_view host) const;
  // The first name in the certificate that is not a pattern; empty if there is none.
  std::string Name() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Stamp = std::array<int64_t, 6>;  // inode and change time of both files

  Certificate(std::filesystem::path certificate, std::filesystem::path key);
  Status Read();
  Stamp ReadStamp() const;

  const std::filesystem::path certificate_;
  const std::filesystem::path key_;
  mutable std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Stamp read_{};
  Stamp refused_{};  // the stamp of unusable files
  Clock::time_point retry_at_;
};

}  // namespace attune::server

#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune::server {

// The token with which a browser is logged in. The session ends when that token is revoked.
struct BrowserSession {
  std::string token_name;
  std::string token_sha256;  // digest of the token's secret
};

// Manages the sessions of logged-in browsers and the one-time codes to log in. Both are files of
// the data folder without secrets, so they survive a restart of the server. Any thread, and any
// process of the user who owns the folder.
class BrowserSessions {
 public:
  static constexpr std::chrono::minutes kCodeLifetime{10};
  static constexpr std::chrono::hours kSessionLifetime{24 * 30};

  explicit BrowserSessions(const std::filesystem::path& data_dir);

  // Creates a session and returns its secret, for a cookie. Deletes sessions that have expired.
  // Errors: see WriteWhole.
  Result<std::string> Create(const BrowserSession& session) const;

  // Returns the session with this secret; nullopt if it has ended, has expired or never existed.
  // Returns an error if its file cannot be read now.
  Result<std::optional<BrowserSession>> Find(std::string_view secret) const;

  // Ends a session. Does nothing if there is none with this secret.
  void Remove(std::string_view secret) const;

  // Creates a code with which one browser may log in as the server's admin within kCodeLifetime.
  Result<std::string> CreateCode() const;

  // Uses up a code. Returns whether it was valid. Only one of several callers gets true.
  bool TakeCode(std::string_view code) const;

 private:
  const std::filesystem::path sessions_;
  const std::filesystem::path codes_;
};

}  // namespace attune::server

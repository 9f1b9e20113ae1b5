#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune::server {

// Who a browser is logged in as. The session ends when that token is revoked.
struct BrowserSession {
  std::string token_name;
  std::string token_sha256;  // digest of the token's secret
};

// The browsers that are logged in, and the codes with which one may log in once. Both are files of
// the data folder that hold no secret, so they survive a restart of the server. Any thread, and any
// process of the user who owns the folder.
class BrowserSessions {
 public:
  static constexpr std::chrono::minutes kCodeLifetime{10};
  static constexpr std::chrono::hours kSessionLifetime{24 * 30};

  explicit BrowserSessions(const std::filesystem::path& data_dir);

  // Creates a session and returns its secret, for a cookie. Deletes sessions that have expired.
  // Errors: as of WriteWhole.
  Result<std::string> Create(const BrowserSession& session) const;

  // Returns the session with this secret. Nullopt if it has ended, expired or never was. Returns an
  // error if its file cannot be read now.
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

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/folder/browser_sessions.h"
#include "server/folder/named_tokens.h"
#include "server/http/transport/certificate.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Decides which requests are allowed. Loopback names and the names in the certificate always belong
// to this server. Refuses pages of another origin, and pages that reached the server under a
// foreign name (DNS rebinding).
class Access {
 public:
  struct Options {
    std::string host;                                // the address that the server listens on
    std::shared_ptr<const Certificate> certificate;  // null without TLS
    // secret of the server's own token `admin`, which may do everything; not empty
    std::string secret;
    const NamedTokens* others = nullptr;        // other tokens; null: none; outlive the object
    const BrowserSessions* sessions = nullptr;  // outlive the object
  };

  explicit Access(Options options);

  // Sets the port that ends the cookie's name. All ports of a host share its cookies.
  void SetPort(int port);

  // Whether the head of a request shows a valid token or the cookie of a logged-in browser.
  bool ShowsToken(const Request& head) const;

  // Returns the refusal of a request, or nullopt if it may continue. Sets `request.actor` to the
  // token's name and `request.is_admin` by its role.
  std::optional<Response> Refuse(Request& request) const;

  // GET /login with ?code=…, ?token=… or a bearer token: logs the browser in and redirects to the
  // dashboard.
  Response Login(const Request& request) const;

  // POST /logout: ends the session of the browser.
  Response Logout(const Request& request) const;

 private:
  bool KnownHost(std::string_view host) const;
  // Find the token with this secret, the token that created the session with this secret, and the
  // token of a request. Return an error if the files cannot be read now.
  Result<std::optional<NamedToken>> FindToken(std::string_view secret) const;
  Result<std::optional<NamedToken>> FindOfSession(std::string_view secret) const;
  Result<std::optional<NamedToken>> TokenOf(const Request& request) const;
  std::string Cookie(const std::string& value, const Request& request) const;

  const Options options_;
  const NamedToken admin_;
  std::string cookie_ = "attune_session";
};

// Whether a path belongs to the API, and not to the dashboard's files or the health checks.
bool IsApi(std::string_view path);

}  // namespace attune::server

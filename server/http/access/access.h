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

// Decides who may ask for what. Loopback names and the names in the certificate are always this
// server's. A page of another origin is refused, and so is one that reached the server under its
// own name (DNS rebinding).
class Access {
 public:
  struct Options {
    std::string host;                                // the address that the server listens on
    std::shared_ptr<const Certificate> certificate;  // null without TLS
    std::string secret;  // of the server's own token, `admin`, which may do everything; not empty
    const NamedTokens* others = nullptr;        // null: there are none; outlive the object
    const BrowserSessions* sessions = nullptr;  // outlive the object
  };

  explicit Access(Options options);

  // The port that the name of the cookie ends with. Cookies of one host are shared by its ports.
  void SetPort(int port);

  // Whether the head of a request shows a valid token or the cookie of a browser that is logged in.
  bool ShowsToken(const Request& head) const;

  // The refusal of a request; nullopt if it may continue. `request.actor` then names the token, and
  // `request.is_admin` says its role.
  std::optional<Response> Refuse(Request& request) const;

  // GET /login with ?code=…, ?token=… or a bearer token: logs the browser in and leads to the page.
  Response Login(const Request& request) const;

  // POST /logout: ends the session of the browser.
  Response Logout(const Request& request) const;

 private:
  bool KnownHost(std::string_view host) const;
  // The token with this secret, the token that the session with this secret was created by, and the
  // token that a request shows. They return an error if the files cannot be read now.
  Result<std::optional<NamedToken>> Known(std::string_view secret) const;
  Result<std::optional<NamedToken>> OfSession(std::string_view secret) const;
  Result<std::optional<NamedToken>> TokenOf(const Request& request) const;
  std::string Cookie(const std::string& value, const Request& request) const;

  const Options options_;
  const NamedToken admin_;
  std::string cookie_ = "attune_session";
};

// Whether a path is the API's (as opposed to the page's own files and the health checks).
bool IsApi(std::string_view path);

}  // namespace attune::server

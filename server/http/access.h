#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"
#include "server/http/wire/certificate.h"

namespace attune::server {

// A secret, and who has it: what is done with it is done in that name.
struct Token {
  std::string name;
  std::string secret;
};

// Who may ask what. Loopback names are always this server's, and those in its certificate; a page
// of another origin, or one that reached us under a name of its own (DNS rebinding), is refused.
class Access {
 public:
  // `host`: the address the server listens on. `certificate`: of those who come by TLS; null:
  // nobody does. REQUIRES: the token's secret is not empty.
  Access(std::string host, std::shared_ptr<const Certificate> certificate, Token token);

  // The refusal of a request, or nothing when it may go on: then `request.actor` says in whose
  // name.
  std::optional<Response> Refuse(Request& request) const;

  // GET /login?token=…: sets the cookie and leads to the page.
  Response Login(const Request& request) const;

 private:
  bool KnownHost(std::string_view host) const;
  bool Authenticated(const Request& request) const;

  const std::string host_;
  const std::shared_ptr<const Certificate> certificate_;
  const Token token_;
};

// Whether a path is the API's (as opposed to the page's own files and the health checks).
bool IsApi(std::string_view path);

}  // namespace attune::server

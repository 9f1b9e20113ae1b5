#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/folder/named_tokens.h"
#include "server/http/transport/certificate.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Who may ask what. Loopback names are always this server's, and those in its certificate; a page
// of another origin, or one that reached us under a name of its own (DNS rebinding), is refused.
class Access {
 public:
  // `host`: the address the server listens on. `certificate`: of those who come by TLS; null:
  // nobody does. `secret`: of the server's own token, `admin`, who may do everything. `others`:
  // those of people, which outlive the object; null: there are none. REQUIRES: `secret` is not
  // empty.
  Access(std::string host, std::shared_ptr<const Certificate> certificate, std::string secret,
         const NamedTokens* others);

  // The refusal of a request, or nothing when it may go on: then `request.actor` says in whose
  // name.
  std::optional<Response> Refuse(Request& request) const;

  // GET /login?token=…: sets the cookie and leads to the page.
  Response Login(const Request& request) const;

 private:
  bool KnownHost(std::string_view host) const;
  std::optional<NamedToken> Known(std::string_view secret) const;

  const std::string host_;
  const std::shared_ptr<const Certificate> certificate_;
  const std::string secret_;
  const NamedTokens* const others_;
};

// Whether a path is the API's (as opposed to the page's own files and the health checks).
bool IsApi(std::string_view path);

}  // namespace attune::server

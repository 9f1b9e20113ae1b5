#pragma once

#include "server/folder/named_tokens.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Handles requests for tokens. Only admins may send them. Any thread.
class Tokens {
 public:
  // `tokens` must outlive the object; null: the server keeps no tokens except its own.
  explicit Tokens(const NamedTokens* tokens) : tokens_(tokens) {}

  Response List(const Request& request, const Target& target);
  Response Create(const Request& request, const Target& target);
  Response Revoke(const Request& request, const Target& target);

 private:
  const NamedTokens* const tokens_;
};

}  // namespace attune::server

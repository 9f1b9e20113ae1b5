#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::tls {

// The data that an executor needs to join a server on another machine. People copy it as one word:
// TOKEN, or sha256:FINGERPRINT:TOKEN if the server uses TLS.
struct Join {
  std::string token;
  std::string fingerprint;  // Fingerprint() of the server's certificate; empty: no TLS

  friend bool operator==(const Join&, const Join&) = default;
};

std::string ToText(const Join& join);

// Nullopt if the text has no token, a space or control character, or an incomplete fingerprint.
std::optional<Join> ParseJoin(std::string_view text);

}  // namespace attune::tls

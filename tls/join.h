#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::tls {

// What an executor has to know to join a server elsewhere, in one word that can be copied:
// TOKEN, or sha256:FINGERPRINT:TOKEN where the server speaks TLS.
struct Join {
  std::string token;
  std::string fingerprint;  // of the server's certificate, as Fingerprint() has it; empty: no TLS

  friend bool operator==(const Join&, const Join&) = default;
};

std::string ToText(const Join& join);

// Nullopt for a text that is none: no token, a space or a control character in it, or no whole
// fingerprint where one begins.
std::optional<Join> ParseJoin(std::string_view text);

}  // namespace attune::tls

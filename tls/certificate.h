#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::tls {

// A certificate and its private key, both in PEM format.
struct Identity {
  std::string certificate;
  std::string key;
};

// The name in every certificate, and the name that clients expect. It does not identify a server.
inline constexpr std::string_view kCertificateName = "attune";

// Creates a key on the curve P-256 and a self-signed certificate. The certificate is valid for a
// hundred years, and from a day ago for hosts whose clock is behind. It names no host, because
// clients know its fingerprint. Returns nullopt if OpenSSL fails, for example because it lacks
// randomness.
std::optional<Identity> MakeIdentity();

// Write an identity as the text of one file, and read it. ParsePem returns nullopt if the
// certificate or the key is missing, or if they do not belong together.
std::string ToPem(const Identity& identity);
std::optional<Identity> ParsePem(const std::string& pem);

// SHA-256 of the first certificate in a PEM text, as 64 lower-case hexadecimal digits. Nullopt if
// the text has none.
std::optional<std::string> Fingerprint(std::string_view pem);

}  // namespace attune::tls

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::tls {

// A certificate and its private key, as PEM.
struct Identity {
  std::string certificate;
  std::string key;
};

// The name in every certificate, for which a server is asked; it says nothing of who holds one.
inline constexpr std::string_view kCertificateName = "attune";

// A new key on the curve P-256 with a certificate that it has signed itself: valid from a day ago,
// for hosts whose clock is behind, and for a hundred years. It names no host, since whoever
// connects knows its fingerprint. Nullopt when OpenSSL cannot, for want of randomness, say.
std::optional<Identity> MakeIdentity();

// An identity as the text of one file, and back; nullopt where the text does not hold both, or the
// certificate is not the key's.
std::string ToPem(const Identity& identity);
std::optional<Identity> ParsePem(const std::string& pem);

// SHA-256 of the first certificate in a PEM text, in 64 lower-case hexadecimal digits; nullopt when
// there is none.
std::optional<std::string> Fingerprint(std::string_view pem);

}  // namespace attune::tls

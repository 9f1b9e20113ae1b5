#include "tls/certificate.h"

#include <string>

#include <gtest/gtest.h>

namespace attune::tls {
namespace {

// Made by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes`. The fingerprint
// is from `openssl x509 -fingerprint -sha256`.
constexpr char kCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUcljk9GfqPqBlBk23Sa3fUiAmZDQwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYXR0dW5lMCAXDTI2MTEyMjE5NDc0MFoYDzIxMjYxMDI5MTk0
NzQwWjARMQ8wDQYDVQQDDAZhdHR1bmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATg2PUHX5+jMb6nIJqQVTsoZIljrYMtm78Jviu2hWUumU/2HyDyZqvybRusTuFB
kq8zDJs7Xijq2oBWDFXJsZNso1MwUTAdBgNVHQ4EFgQUJqfpYh0frK4urliIm8I4
j6hWNX8wHwYDVR0jBBgwFoAUJqfpYh0frK4urliIm8I4j6hWNX8wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBMwa5aGNnH0L5oWbfSIzVvugupWOrX
fYgKm1tAVN1PnQIhAIqEtuchg9McejtfNpImj3e4zGXVUBrXdlx+/IIJwiPx
-----END CERTIFICATE-----
)";
constexpr char kItsFingerprint[] =
    "7bd25f1d275d05137ee3e692712731811312251d1aabc1d8b8b94a95d1f9a1cc";

TEST(Certificate, HasTheFingerprintThatOpenSslComputes) {
  EXPECT_EQ(Fingerprint(kCertificate), kItsFingerprint);
}

TEST(Certificate, IsDifferentForEachIdentity) {
  const auto first = MakeIdentity();
  const auto second = MakeIdentity();
  ASSERT_TRUE(first && second);
  EXPECT_NE(Fingerprint(first->certificate), Fingerprint(second->certificate));
  EXPECT_NE(first->key, second->key);
}

TEST(Certificate, IsWrittenToAndReadFromOneFile) {
  const Identity made = MakeIdentity().value();
  const auto read = ParsePem(ToPem(made));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->certificate, made.certificate);
  EXPECT_EQ(read->key, made.key);
  EXPECT_EQ(ParsePem(made.key + made.certificate)->certificate, made.certificate);
}

TEST(Certificate, RefusesAnIncompleteFileOrTheKeyOfAnother) {
  const Identity made = MakeIdentity().value();
  const Identity other = MakeIdentity().value();
  for (const std::string& pem :
       {std::string(), std::string("hello"), made.certificate, made.key,
        ToPem(made).substr(0, made.certificate.size() + made.key.size() / 2),
        other.certificate + made.key}) {
    EXPECT_FALSE(ParsePem(pem)) << pem;
  }
  EXPECT_EQ(Fingerprint(made.key), std::nullopt);
}

}  // namespace
}  // namespace attune::tls

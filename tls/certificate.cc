#include "tls/certificate.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <array>
#include <climits>
#include <cstdint>
#include <memory>

#include "system/hex.h"

namespace attune::tls {
namespace {

constexpr long kDay = 24L * 60 * 60;
constexpr long kLifetimeDays = 36'500;
constexpr long kVersion3 = 2;

template <auto kFree>
struct Free {
  void operator()(auto* pointer) const { kFree(pointer); }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Bio Reading(std::string_view text) {
  if (text.size() > INT_MAX) return nullptr;
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate ReadCertificate(std::string_view pem) {
  const Bio bio = Reading(pem);
  return Certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
}

Key ReadKey(std::string_view pem) {
  const Bio bio = Reading(pem);
  // With an empty passphrase, a key that needs one is an error. OpenSSL would otherwise ask on the
  // terminal.
  return Key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, const_cast<char*>(""))
                 : nullptr);
}

bool Describe(X509* certificate, EVP_PKEY* key) {
  uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, kVersion3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), kLifetimeDays, 0, nullptr) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(kCertificateName.data()),
                                    static_cast<int>(kCertificateName.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) != 0;
}

std::optional<Identity> Write(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_pem(BIO_new(BIO_s_mem()));
  const Bio key_pem(BIO_new(BIO_s_mem()));
  if (!certificate_pem || !key_pem || PEM_write_bio_X509(certificate_pem.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return std::nullopt;
  }
  return Identity{TextOf(certificate_pem.get()), TextOf(key_pem.get())};
}

}  // namespace

std::optional<Identity> MakeIdentity() {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate || !Describe(certificate.get(), key.get())) return std::nullopt;
  return Write(certificate.get(), key.get());
}

std::string ToPem(const Identity& identity) { return identity.certificate + identity.key; }

std::optional<Identity> ParsePem(const std::string& pem) {
  const Certificate certificate = ReadCertificate(pem);
  const Key key = ReadKey(pem);
  if (!certificate || !key || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return std::nullopt;
  }
  return Write(certificate.get(), key.get());
}

std::optional<std::string> Fingerprint(std::string_view pem) {
  const Certificate certificate = ReadCertificate(pem);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1) {
    return std::nullopt;
  }
  return ToHex({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace attune::tls

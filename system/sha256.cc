#include "system/sha256.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/result.h"
#include "system/hex.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune {
namespace {

constexpr size_t kReadFileBytes = 1 << 20;  // per read
constexpr size_t kHexDigits = 64;

std::string_view AsText(const unsigned char* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  ATTUNE_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest, &size);
  return ToHex(AsText(digest, size));
}

std::string Sha256::HexOf(std::string_view bytes) {
  Sha256 sha;
  sha.Add(bytes);
  return sha.Hex();
}

Result<std::string> Sha256::HexOfFile(const std::filesystem::path& file,
                                      const std::function<bool()>& tick) {
  const UniqueFd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string buffer(kReadFileBytes, '\0');
  Sha256 sha;
  for (ssize_t count = 1; count != 0;) {
    if (tick && !tick())
      return Error{ErrorCode::kUnavailable, "the reading of " + file.string() + " was cancelled"};
    count = opened ? read(opened.get(), buffer.data(), buffer.size()) : -1;
    if (count < 0 && errno != EINTR) return SystemError("cannot read " + file.string(), errno);
    if (count > 0) sha.Add({buffer.data(), static_cast<size_t>(count)});
  }
  return sha.Hex();
}

bool IsSha256(std::string_view hex) {
  return hex.size() == kHexDigits && hex.find_first_not_of("0123456789abcdef") == hex.npos;
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  return std::string(AsText(mac, size));
}

bool IsHmacSha256(std::string_view mac, std::string_view key, std::string_view text) {
  const std::string known = HmacSha256(key, text);
  return mac.size() == known.size() && CRYPTO_memcmp(mac.data(), known.data(), known.size()) == 0;
}

}  // namespace attune

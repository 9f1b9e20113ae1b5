#include "trainable/checkpoints/sha256.h"

#include <openssl/evp.h>

#include <fstream>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk::trainable {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1) {
    throw Error("OpenSSL offers no SHA-256 on this machine");
  }
}

Sha256::~Sha256() = default;

void Sha256::Update(const void* data, std::size_t bytes) {
  EVP_DigestUpdate(state_->context.get(), data, bytes);
}

std::string Sha256::HexDigest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest, &size);
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

std::string HexSha256(std::string_view bytes) {
  Sha256 sha;
  sha.Update(bytes.data(), bytes.size());
  return sha.HexDigest();
}

FileDigest DigestFile(const std::filesystem::path& file, const std::function<void()>& tick) {
  std::ifstream in(file, std::ios::binary);
  Sha256 sha;
  FileDigest digest;
  std::vector<char> chunk(1 << 20);
  while (in) {
    if (tick) tick();
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    sha.Update(chunk.data(), in.gcount());
    digest.bytes += in.gcount();
  }
  if (!in.eof()) throw Error(file.string() + ": cannot be read");
  digest.sha256 = sha.HexDigest();
  return digest;
}

}  // namespace attune::inline sdk::trainable

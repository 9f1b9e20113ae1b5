#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace attune::inline sdk::trainable {

// SHA-256 of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(const void* data, std::size_t bytes);

  // 64 lower-case hex digits. REQUIRES: called once.
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string HexSha256(std::string_view bytes);

struct FileDigest {
  std::int64_t bytes = 0;
  std::string sha256;
};

// Throws attune::Error when the file cannot be read. `tick` is called many times a second.
FileDigest DigestFile(const std::filesystem::path& file, const std::function<void()>& tick = {});

}  // namespace attune::inline sdk::trainable

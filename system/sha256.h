#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// SHA-256 of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Add(std::string_view bytes);
  std::string Hex();  // 64 lower-case digits; once, after the last Add()

  static std::string HexOf(std::string_view bytes);

  // Of a file's bytes. `tick` is called many times a second. Errors: as of SystemError().
  static Result<std::string> HexOfFile(const std::filesystem::path& file,
                                       const std::function<void()>& tick = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether this is 64 lower-case hex digits.
bool IsSha256(std::string_view hex);

// HMAC-SHA256 (RFC 2104), 32 bytes: whoever shows it for a text that was not known before has the
// key.
std::string HmacSha256(std::string_view key, std::string_view text);

// Whether this is that of the text. Takes the same time wherever they differ, so that nobody finds
// it out byte by byte.
bool IsHmacSha256(std::string_view mac, std::string_view key, std::string_view text);

}  // namespace attune

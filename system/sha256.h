#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// SHA-256 of bytes that arrive in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Add(std::string_view bytes);
  std::string Hex();  // 64 lower-case digits; call it once, after the last Add()

  static std::string HexOf(std::string_view bytes);

  // The digest of a file's contents. Calls `tick` before each MiB; if it returns false, the error
  // is kUnavailable. Other errors: see SystemError().
  static Result<std::string> HexOfFile(const std::filesystem::path& file,
                                       const std::function<bool()>& tick = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether the text is 64 lower-case hexadecimal digits.
bool IsSha256(std::string_view hex);

// HMAC-SHA256 (RFC 2104), 32 bytes. A valid code for a new text proves that its sender has the key.
std::string HmacSha256(std::string_view key, std::string_view text);

// Whether `mac` is the code of `text`. The time does not depend on where they differ, so nobody can
// guess a code byte by byte.
bool IsHmacSha256(std::string_view mac, std::string_view key, std::string_view text);

}  // namespace attune

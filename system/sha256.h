#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace attune {

// SHA-256 of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Add(std::string_view bytes);
  std::string Hex();  // 64 lower-case digits; once, after the last Add()

  static std::string HexOf(std::string_view bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// HMAC-SHA256 (RFC 2104), 32 bytes: who shows it of a text that was not known before has the key.
std::string HmacSha256(std::string_view key, std::string_view text);

// Whether this is that of the text. Takes the same time wherever they differ, so that nobody finds
// it out byte by byte.
bool IsHmacSha256(std::string_view mac, std::string_view key, std::string_view text);

}  // namespace attune

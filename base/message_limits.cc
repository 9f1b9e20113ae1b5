#include "base/message_limits.h"

#include <algorithm>

namespace attune {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr size_t kDigestHexDigits = 64;

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// 14000000: "(14,000,000 bytes, cut)".
std::string LengthNote(size_t bytes) {
  std::string digits = std::to_string(bytes);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return "(" + digits + " bytes, cut)";
}

}  // namespace

bool HasControlCharacters(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

bool IsMetricName(std::string_view name) {
  return !name.empty() && name.size() <= kMetricNameBytesMax && !HasControlCharacters(name);
}

bool IsDigest(std::string_view digest) {
  return digest.starts_with(kDigestPrefix) &&
         digest.size() == kDigestPrefix.size() + kDigestHexDigits &&
         digest.find_first_not_of("0123456789abcdef", kDigestPrefix.size()) == digest.npos;
}

std::string CutEnd(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  const std::string note = "… " + LengthNote(text.size());
  size_t end = bytes_max - note.size();
  while (end > 0 && ContinuesCharacter(text[end])) --end;
  return std::string(text.substr(0, end)) + note;
}

std::string CutBeginning(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  const std::string note = LengthNote(text.size()) + " …";
  size_t begin = text.size() - (bytes_max - note.size());
  while (begin < text.size() && ContinuesCharacter(text[begin])) ++begin;
  return note + std::string(text.substr(begin));
}

}  // namespace attune

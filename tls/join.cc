#include "tls/join.h"

#include <algorithm>

#include "system/sha256.h"

namespace attune::tls {
namespace {

constexpr std::string_view kPrefix = "sha256:";
constexpr size_t kFingerprintDigits = 64;

bool IsPrintable(char c) { return c > ' ' && c < '\x7f'; }

}  // namespace

std::string ToText(const Join& join) {
  if (join.fingerprint.empty()) return join.token;
  return std::string(kPrefix) + join.fingerprint + ":" + join.token;
}

std::optional<Join> ParseJoin(std::string_view text) {
  Join join;
  if (text.starts_with(kPrefix)) {
    text.remove_prefix(kPrefix.size());
    join.fingerprint = text.substr(0, kFingerprintDigits);
    if (!IsSha256(join.fingerprint) || !text.substr(kFingerprintDigits).starts_with(':')) {
      return std::nullopt;
    }
    text.remove_prefix(kFingerprintDigits + 1);
  }
  if (text.empty() || !std::ranges::all_of(text, IsPrintable)) return std::nullopt;
  join.token = text;
  return join;
}

}  // namespace attune::tls

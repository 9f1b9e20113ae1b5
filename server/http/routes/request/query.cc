#include "server/http/routes/request/query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "base/result.h"
#include "core/log/request_key.h"
#include "core/space/value.h"
#include "system/hex.h"
#include "system/sha256.h"

namespace attune::server {
namespace {

constexpr size_t kDigestBytes = 32;                 // digits of the digest that are used, of 64
constexpr uint64_t kScramble = 0x9e3779b97f4a7c15;  // makes tokens opaque

uint64_t HashOf(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Error WrongToken(const std::string& token, const std::string& of) {
  return {ErrorCode::kInvalid, "page_token: '" + token + "' is not a token of this list" + of +
                                   "; omit it to begin with the first page"};
}

std::string Hex(uint64_t number) {
  std::array<char, 16> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

}  // namespace

Status CheckQuery(const Request& request, std::string_view operation) {
  std::vector<std::string_view> known;
  for (const rest::QueryParameter& each : rest::kQueryParameters) {
    if (each.method == request.method && each.path == operation) known.push_back(each.name);
  }
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string list;
    for (const std::string_view each : known)
      list += (list.empty() ? "" : ", ") + std::string(each);
    return Error{ErrorCode::kInvalid,
                 name + ": unknown query parameter; " +
                     (list.empty() ? "this request has none" : "this request knows " + list)};
  }
  return {};
}

Result<int64_t> IntegerQuery(const Request& request, std::string_view name, int64_t fallback,
                             int64_t min, int64_t max) {
  const auto text = request.Query(name);
  if (!text) return fallback;
  const auto number = ParseNumber<int64_t>(*text);
  if (!number || *number < min || *number > max)
    return Error{ErrorCode::kInvalid, std::string(name) + ": '" + *text +
                                          "' is not a whole number from " + std::to_string(min) +
                                          " to " + std::to_string(max)};
  return *number;
}

Result<double> NumberQuery(const Request& request, std::string_view name, double fallback,
                           double min, double max) {
  const auto text = request.Query(name);
  if (!text) return fallback;
  const auto number = ParseNumber<double>(*text);
  if (!number || !(*number >= min && *number <= max))
    return Error{ErrorCode::kInvalid, std::string(name) + ": '" + *text +
                                          "' is not a number from " + FormatShort(min) + " to " +
                                          FormatShort(max)};
  return *number;
}

Result<bool> BooleanQuery(const Request& request, std::string_view name) {
  const std::string text = request.Query(name).value_or("false");
  if (text == "true" || text == "false") return text == "true";
  return Error{ErrorCode::kInvalid, std::string(name) + ": '" + text + "' is not true or false"};
}

std::string PageToken(std::string_view list, uint64_t next) {
  return Hex(next ^ HashOf(list)) + "-" + Hex((next * kScramble) ^ HashOf(list));
}

Result<std::optional<uint64_t>> ParsePageToken(std::string_view list, const Request& request) {
  const std::string token = request.Query("page_token").value_or("");
  if (token.empty()) return std::optional<uint64_t>();
  const auto masked = ParseNumber<uint64_t>(std::string_view(token).substr(0, token.find('-')), 16);
  if (masked && PageToken(list, *masked ^ HashOf(list)) == token)
    return std::optional<uint64_t>(*masked ^ HashOf(list));
  return WrongToken(token, "");
}

// The digits of the position's bytes, and a digest of the list and the position. The first letter
// is no digit, so that the tokens differ from those of PageToken.
std::string PositionToken(std::string_view list, std::string_view position) {
  return "p" + ToHex(position) + '-' +
         Hex(HashOf(std::string(list) + '\0' + std::string(position)) * kScramble);
}

Result<std::optional<std::string>> ParsePositionToken(std::string_view list,
                                                      const Request& request) {
  const std::string token = request.Query("page_token").value_or("");
  if (token.empty()) return std::optional<std::string>();
  const std::string_view digits = std::string_view(token).substr(1, token.find('-') - 1);
  std::string position;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    position += static_cast<char>(ParseNumber<unsigned>(digits.substr(i, 2), 16).value_or(0));
  if (PositionToken(list, position) == token) return std::optional(std::move(position));
  return WrongToken(token, " with this order_by and filter");
}

Result<std::string> IdempotencyKey(const Request& request) {
  const std::string key = request.Header("Idempotency-Key").value_or("");
  if (key.empty()) return key;
  if (key.size() <= kIdempotencyKeyMaxBytes)
    return RequestKey(request.actor, key, Sha256::HexOf(request.body).substr(0, kDigestBytes));
  return Error{ErrorCode::kInvalid, "Idempotency-Key: longer than " +
                                        std::to_string(kIdempotencyKeyMaxBytes) + " bytes"};
}

}  // namespace attune::server

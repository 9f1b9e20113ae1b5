#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace attune {

// The key that identifies a repeated request: the actor that sent it, the client's Idempotency-Key,
// and a digest of the body, each on a line. None of them contains a line feed.
inline std::string RequestKey(std::string_view actor, std::string_view client_key,
                              std::string_view digest) {
  return std::string(actor).append("\n").append(client_key).append("\n").append(digest);
}

// The range [first, second) of request keys with the same actor and the same Idempotency-Key, and
// any body. The range of a key that RequestKey did not make contains only that key.
inline std::pair<std::string, std::string> SameRequests(std::string_view request_key) {
  const size_t digest = request_key.rfind('\n') + 1;
  if (digest == 0) return {std::string(request_key), std::string(request_key) + '\1'};
  std::string after(request_key.substr(0, digest));
  after.back() = '\n' + 1;
  return {std::string(request_key.substr(0, digest)), std::move(after)};
}

// Finds an earlier request, perhaps with another body, in a map from request keys. Returns
// by_key.end() if there is none, or if the key is empty.
template <class Map>
auto FindRequest(const Map& by_key, std::string_view request_key) {
  if (request_key.empty()) return by_key.end();
  const auto [from, until] = SameRequests(request_key);
  const auto found = by_key.lower_bound(from);
  return found != by_key.end() && found->first < until ? found : by_key.end();
}

}  // namespace attune

#include "server/http/transport/message.h"

#include <algorithm>
#include <cctype>

namespace attune::server {
namespace {

int Lower(char c) { return std::tolower(static_cast<unsigned char>(c)); }

template <class Map>
std::optional<std::string> FindValue(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

bool CaseInsensitive::operator()(std::string_view a, std::string_view b) const {
  return std::ranges::lexicographical_compare(a, b, {}, Lower, Lower);
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  const CaseInsensitive less;
  return !less(a, b) && !less(b, a);
}

std::optional<std::string> Request::Header(std::string_view name) const {
  return FindValue(headers, name);
}

std::optional<std::string> Request::Query(std::string_view name) const {
  return FindValue(query, name);
}

}  // namespace attune::server

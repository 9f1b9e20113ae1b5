#include "cli/json.h"

namespace attune::cli {

const Json& MemberOf(const Json& object, std::string_view key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(std::string(key));
  return found == object.end() ? null : *found;
}

std::string TextMember(const Json& object, std::string_view key) {
  const Json& value = MemberOf(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace attune::cli

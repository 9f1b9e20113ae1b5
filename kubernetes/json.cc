#include "kubernetes/json.h"

namespace attune::kubernetes {
namespace {

const Json kNull;

}  // namespace

const Json& At(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* found = &json;
  for (const std::string_view key : path) {
    if (!found->is_object()) return kNull;
    const auto member = found->find(key);
    if (member == found->end()) return kNull;
    found = &*member;
  }
  return *found;
}

std::string TextAt(const Json& json, std::initializer_list<std::string_view> path) {
  const Json& member = At(json, path);
  return member.is_string() ? member.get<std::string>() : "";
}

int64_t IntegerAt(const Json& json, std::initializer_list<std::string_view> path) {
  const Json& member = At(json, path);
  return member.is_number_integer() ? member.get<int64_t>() : 0;
}

const Json& FindByKey(const Json& list, std::string_view key, std::string_view value) {
  if (!list.is_array()) return kNull;
  for (const Json& element : list)
    if (TextAt(element, {key}) == value) return element;
  return kNull;
}

}  // namespace attune::kubernetes

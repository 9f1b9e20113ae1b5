#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "json/parse.h"

namespace attune::kubernetes {

using Json = nlohmann::json;

// The member at this path of objects; null if there is none. Owned by `json`.
const Json& At(const Json& json, std::initializer_list<std::string_view> path);
// Empty if there is no such text.
std::string TextAt(const Json& json, std::initializer_list<std::string_view> path);
// 0 if there is no such number.
int64_t IntegerAt(const Json& json, std::initializer_list<std::string_view> path);

// The element of the array `list` whose member `key` is `value`; null if there is none.
const Json& FindByKey(const Json& list, std::string_view key, std::string_view value);

}  // namespace attune::kubernetes

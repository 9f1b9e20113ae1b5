#pragma once

#include <string>
#include <string_view>

#include "json/parse.h"

namespace attune::cli {

// Keeps the order of members, so that a configuration is printed as in its sweep file.
using Json = nlohmann::ordered_json;

// Access to members of documents that the REST contract does not describe, such as events. Other
// answers are structs of rest/contract.h.
const Json& MemberOf(const Json& object,
                     std::string_view key);  // null if absent; owned by `object`
std::string TextMember(const Json& object, std::string_view key);  // empty if it is not a string

// JSON in one line, or in several if `indent` ≥ 0. Replaces bytes that are not UTF-8.
std::string Dump(const Json& json, int indent = -1);

}  // namespace attune::cli

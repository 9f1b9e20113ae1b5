#pragma once

#include <string>
#include <string_view>

#include "json/parse.h"

namespace attune::cli {

// Keeps the order of members, so that a configuration reads as in its sweep file.
using Json = nlohmann::ordered_json;

// Members of documents that the REST contract does not describe. Answers are structs of
// rest/contract.h.
const Json& At(const Json& object, std::string_view key);      // null if absent; owned by `object`
std::string TextAt(const Json& object, std::string_view key);  // empty if it is not a text

// One line, or many if `indent` ≥ 0. Bytes that are not UTF-8 are replaced.
std::string Dump(const Json& json, int indent = -1);

}  // namespace attune::cli

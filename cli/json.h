#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/parse.h"

namespace attune::cli {

// Keeps the order of the server's answers, so that a configuration reads as in its sweep file.
using Json = nlohmann::ordered_json;

// Fields of answers, which may be absent or null, or of a type that this program does not know yet:
// then the fallback, so that an older client reads a newer server.
const Json& At(const Json& object, std::string_view key);  // null when absent; owned by `object`
std::string TextAt(const Json& object, std::string_view key);
int64_t WholeAt(const Json& object, std::string_view key, int64_t fallback = 0);

// One line, whatever the bytes in it; `indent` ≥ 0: many.
std::string Dump(const Json& json, int indent = -1);

}  // namespace attune::cli

#pragma once

// Parses JSON (RFC 8259) to values of nlohmann's library. `Json` is nlohmann::json, or
// nlohmann::ordered_json to keep the order of members.
//
// Parse with these functions and not with Json::parse. The parser is compiled once, in parse.cc,
// because it costs each other library about a second to compile.

#include <istream>
#include <nlohmann/json.hpp>
#include <string_view>

namespace attune {

// Returns a discarded value (is_discarded()) if `text` is not JSON.
template <class Json>
Json ParseJson(std::string_view text);

// The same for the rest of `in`.
template <class Json>
Json ParseJson(std::istream& in);

// Throws Json::parse_error, which names the byte and the reason, if `text` is not JSON.
template <class Json>
Json ParseJsonOrThrow(std::string_view text);

}  // namespace attune

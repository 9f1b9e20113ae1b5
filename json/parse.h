#pragma once

// JSON texts (RFC 8259) to values of nlohmann's library. `Json` is nlohmann::json, or
// nlohmann::ordered_json where the order of members must survive.
//
// Include this header wherever you include nlohmann's. The parser and the members of both classes are
// compiled once, in parse.cc, because they cost each other source about a second to compile.

#include <istream>
#include <nlohmann/json.hpp>
#include <string_view>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace attune {

// Returns a discarded value, which is of no JSON type, if `text` is not JSON.
template <class Json>
Json ParseJson(std::string_view text);

// The same, for all that `in` still holds.
template <class Json>
Json ParseJson(std::istream& in);

// Throws Json::parse_error, which names the byte and the reason, if `text` is not JSON.
template <class Json>
Json ParseJsonOrThrow(std::string_view text);

}  // namespace attune

#include "json/parse.h"

#include <iterator>
#include <string>

namespace attune {

template <class Json>
Json ParseJson(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
Json ParseJson(std::istream& in) {
  return ParseJson<Json>(std::string(std::istreambuf_iterator<char>(in), {}));
}

template <class Json>
Json ParseJsonOrThrow(std::string_view text) {
  return Json::parse(text);
}

template nlohmann::json ParseJson(std::string_view);
template nlohmann::json ParseJson(std::istream&);
template nlohmann::json ParseJsonOrThrow(std::string_view);
template nlohmann::ordered_json ParseJson(std::string_view);
template nlohmann::ordered_json ParseJson(std::istream&);
template nlohmann::ordered_json ParseJsonOrThrow(std::string_view);

}  // namespace attune

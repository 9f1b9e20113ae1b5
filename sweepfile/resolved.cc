#include <algorithm>

#include "sweepfile/codec.h"
#include "sweepfile/scalar.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {
namespace {

// Whether every YAML reader reads the text without quotes as the same text.
bool IsPlain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/';
  };
  // Most readers implement YAML 1.1, which has more words for booleans.
  for (const std::string_view word : {"yes", "no", "on", "off", "y", "n"}) {
    const bool same = std::equal(text.begin(), text.end(), word.begin(), word.end(),
                                 [](char a, char b) { return (a | 0x20) == b; });
    if (same) return false;
  }
  return !text.empty() && (letter(text[0]) || text[0] == '_' || text[0] == '/') &&
         std::all_of(text.begin(), text.end(), inner) && LooksLikeText(text);
}

std::string Scalar(const Json& json) {
  if (json.is_number_float()) return FormatReal(json.get<double>());
  if (json.is_string() && IsPlain(json.get_ref<const std::string&>())) {
    return json.get<std::string>();
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string KeyText(const std::string& key) { return Scalar(Json(key)); }

// The value on one line: [a, b], {min: 0.1, max: 1.0}.
std::string Flow(const Json& json) {
  if (!json.is_structured()) return Scalar(json);
  std::string text;
  for (const auto& [key, member] : json.items()) {
    if (!text.empty()) text += ", ";
    if (json.is_object()) text += KeyText(key) + ": ";
    text += Flow(member);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

bool HasStructure(const Json& json) {
  return std::any_of(json.begin(), json.end(),
                     [](const Json& item) { return item.is_structured(); });
}

}  // namespace

std::string ResolvedYaml(const SweepSpec& spec) {
  const Json json = ToJson(spec);
  std::string text;
  for (const auto& [key, section] : json.items()) {
    text += KeyText(key) + ":";
    if (section.is_object() && !section.empty()) {
      for (const auto& [name, member] : section.items()) {
        text += "\n  " + KeyText(name) + ": " + Flow(member);
      }
    } else if (section.is_array() && HasStructure(section)) {
      for (const Json& item : section) text += "\n  - " + Flow(item);
    } else {
      text += " " + Flow(section);
    }
    text += "\n";
  }
  return text;
}

}  // namespace attune::sweepfile

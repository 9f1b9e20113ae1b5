#include "core/log/labels.h"

#include <algorithm>

#include "base/result.h"

namespace attune {
namespace {

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '/';
}

Status Check(std::string_view what, std::string_view text) {
  if (text.empty()) return Error{ErrorCode::kInvalid, std::string(what) + " is empty"};
  if (text.size() <= kMaxLabelBytes && std::ranges::all_of(text, IsAllowed)) return {};
  return Error{ErrorCode::kInvalid, "`" + std::string(text.substr(0, 2 * kMaxLabelBytes)) +
                                        "` is not a valid " + std::string(what) + "; use at most " +
                                        std::to_string(kMaxLabelBytes) +
                                        " letters, digits, - _ . or /"};
}

}  // namespace

Status CheckLabelName(std::string_view name) { return Check("label name", name); }

Status CheckLabelValue(std::string_view value) { return Check("label value", value); }

Status CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels)
    return Error{ErrorCode::kInvalid, std::to_string(labels.size()) + " labels; an executor has " +
                                          std::to_string(kMaxLabels) + " at most; remove some"};
  for (const auto& [name, value] : labels) {
    if (Status checked = CheckLabelName(name); !checked.ok()) return checked;
    if (Status checked = CheckLabelValue(value); !checked.ok()) return checked;
  }
  return {};
}

bool Matches(const Requirements& required, const Labels& labels) {
  return std::ranges::all_of(required, [&](const auto& asked) {
    const auto label = labels.find(asked.first);
    return label != labels.end() && asked.second.contains(label->second);
  });
}

std::string ToString(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

std::string ToString(const Requirements& required) {
  std::string text;
  for (const auto& [name, values] : required) {
    text += (text.empty() ? "" : ", ") + name + "=";
    for (const std::string& value : values)
      text += (value == *values.begin() ? "" : " or ") + value;
  }
  return text;
}

}  // namespace attune

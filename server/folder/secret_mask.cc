#include "server/folder/secret_mask.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace attune::server {
namespace {

struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// The length of the longest proper part of a value for which `matches` is true; 0 if there is none.
template <class Matches>
size_t LongestPart(std::string_view value, std::string_view text, Matches matches) {
  for (size_t bytes = std::min(value.size() - 1, text.size()); bytes >= kMaskedPartBytesMin;
       --bytes)
    if (matches(bytes)) return bytes;
  return 0;
}

}  // namespace

SecretMask::SecretMask(const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (value.size() < kMaskedBytesMin) continue;
    values_.push_back(value);
    longest_bytes_ = std::max(longest_bytes_, value.size());
  }
}

void SecretMask::Apply(std::string& text) const {
  const std::string_view view = text;
  std::vector<Range> found;  // ranges of the unchanged text, because values may overlap
  for (const std::string_view value : values_) {
    for (size_t at = view.find(value); at != view.npos; at = view.find(value, at + 1))
      found.push_back({at, at + value.size()});
    const size_t first = LongestPart(value, view, [&](size_t bytes) {
      return view.starts_with(value.substr(value.size() - bytes));
    });
    const size_t last = LongestPart(
        value, view, [&](size_t bytes) { return view.ends_with(value.substr(0, bytes)); });
    found.push_back({0, first});
    found.push_back({view.size() - last, view.size()});
  }
  for (const Range& range : found)
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(range.begin),
              text.begin() + static_cast<std::ptrdiff_t>(range.end), '*');
}

}  // namespace attune::server

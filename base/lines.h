#pragma once

#include <string_view>
#include <vector>

namespace attune {

// The lines of `text`, without their ends. They are parts of `text`.
std::vector<std::string_view> SplitLines(std::string_view text);

}  // namespace attune

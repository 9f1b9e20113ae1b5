#pragma once

#include <string>
#include <string_view>

namespace attune::gang {

// Returns the line without the escape sequences of terminals (ECMA-48), such as colours.
std::string WithoutEscapeCodes(std::string_view line);

}  // namespace attune::gang

#pragma once

#include <string>
#include <string_view>

namespace attune::gang {

// The line without the escape sequences of terminals (ECMA-48), such as colours.
std::string WithoutEscapeCodes(std::string_view line);

}  // namespace attune::gang

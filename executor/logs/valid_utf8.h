#pragma once

#include <string>
#include <string_view>

namespace attune::gang {

// Replaces every byte that is not part of valid UTF-8 by U+FFFD. Output of programs may contain any
// bytes, but protocol messages must be valid UTF-8.
std::string ValidUtf8(std::string_view text);

}  // namespace attune::gang

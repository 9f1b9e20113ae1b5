#pragma once

#include <string>
#include <string_view>

namespace attune::gang {

// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD: what a program
// printed may hold anything, a message may not.
std::string ValidUtf8(std::string_view text);

}  // namespace attune::gang

#pragma once

#include <string_view>

namespace attune {

// Whether a secret that was shown is the one that is known. Takes the same time wherever they
// differ, so that nobody finds it out letter by letter.
bool SameSecret(std::string_view shown, std::string_view known);

}  // namespace attune

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attune {

// The number of bytes of the UTF-8 character at the beginning of `text`; 0 if it is invalid (RFC
// 3629: shortest form only, no surrogates, nothing above U+10FFFF). REQUIRES: `text` is not empty.
size_t CharacterBytes(std::string_view text);

bool IsUtf8(std::string_view text);

// Replaces every byte that is not part of valid UTF-8 by U+FFFD. Output of programs may contain any
// bytes, but messages and JSON must be valid UTF-8.
std::string ValidUtf8(std::string_view text);

}  // namespace attune

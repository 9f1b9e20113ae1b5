#pragma once

#include <cstddef>
#include <string>

namespace attune {

// Random bytes from the kernel.
std::string RandomBytes(size_t count);

// Random bytes as two hexadecimal digits each. The default, 48 digits, is a secret that nobody
// guesses.
std::string RandomWord(size_t bytes = 24);

}  // namespace attune

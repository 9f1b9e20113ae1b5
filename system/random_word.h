#pragma once

#include <cstddef>
#include <string>

namespace attune {

// Random bytes from the kernel.
std::string RandomBytes(size_t count);

// Random bytes, written as two hexadecimal digits each. The default gives 48 digits, which nobody
// can guess.
std::string RandomWord(size_t bytes = 24);

}  // namespace attune

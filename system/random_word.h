#pragma once

#include <string>

namespace attune {

// A secret that nobody guesses: 48 hexadecimal digits, as the operating system gives them.
std::string RandomWord();

}  // namespace attune

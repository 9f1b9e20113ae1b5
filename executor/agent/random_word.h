#pragma once

#include <string>

namespace attune::agent {

// 32 random hexadecimal digits, as the operating system gives them: a name that nothing else has.
std::string RandomWord();

}  // namespace attune::agent

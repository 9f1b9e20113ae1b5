#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

std::vector<std::string> Shells();  // bash, zsh, fish

// The script that completes `attune` in a shell. REQUIRES: `shell` is one of Shells().
std::string_view CompletionScript(std::string_view shell);

}  // namespace attune::cli

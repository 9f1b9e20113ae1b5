#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

std::vector<std::string> Shells();  // bash, zsh, fish

// What such a shell reads to complete `attune`. REQUIRES: one of Shells().
std::string_view CompletionScript(std::string_view shell);

}  // namespace attune::cli

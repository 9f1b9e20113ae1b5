#pragma once

#include <span>
#include <string>
#include <string_view>

// Helpers for the output of engines' programs.
namespace attune::pilots {

// The text without white space at its beginning and end.
std::string Trim(std::string_view text);

// Whether the text contains one of the parts.
bool ContainsAny(std::string_view text, std::span<const std::string_view> parts);

}  // namespace attune::pilots

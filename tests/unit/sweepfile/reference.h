#pragma once

#include <string_view>

namespace attune::sweepfile {

// The tables stand between these lines of docs/reference/sweep-file.md.
inline constexpr std::string_view kReferenceBegin = "<!-- keys: begin -->\n";
inline constexpr std::string_view kReferenceEnd = "<!-- keys: end -->";

}  // namespace attune::sweepfile

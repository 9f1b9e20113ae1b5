#pragma once

#include <string_view>

namespace attune::sweepfile {

// The lines of docs/reference/sweep-file.md before and after the tables.
inline constexpr std::string_view kReferenceBegin = "<!-- keys: begin -->\n";
inline constexpr std::string_view kReferenceEnd = "<!-- keys: end -->";

}  // namespace attune::sweepfile

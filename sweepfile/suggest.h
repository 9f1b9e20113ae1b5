#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attune::sweepfile {

// The number of insertions, deletions, replacements and swaps of neighbours between two words
// (Damerau, "A technique for computer detection and correction of spelling errors", CACM 1964).
int EditDistance(std::string_view a, std::string_view b);

// The known word that was probably meant; empty if all differ in more than a third of their
// letters.
std::string Suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace attune::sweepfile

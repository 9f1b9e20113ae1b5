#pragma once

#include <filesystem>
#include <vector>

namespace attune {

// The paths of the entries of a folder, in no order; as far as they can be read.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder);

}  // namespace attune

#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace attune {

// Writes a small file whole, in place of the one that may be there: whoever reads it sees one of
// the two, also after a power cut. The path is absolute.
std::optional<Error> WriteWhole(const std::filesystem::path& path, std::string_view text);

// The names in the folder are what they are also after a power cut, as far as its filesystem can
// see to that.
std::optional<Error> SyncFolder(const std::filesystem::path& folder);

}  // namespace attune

#pragma once

#include <filesystem>

#include "base/result.h"

namespace attune::server {

// Copies the complete snapshots of the folder `from` (see CodeStorage) to the folder
// `to`, and compares their hashes.
// Snapshots that are already there stay. A server may be using `from`, but not `to`. Does nothing
// if `from` has no snapshots. kCorrupt: a file is missing or damaged.
Status CopySnapshots(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace attune::server

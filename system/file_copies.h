#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace attune {

// The inode, size and times of a file as one word. A change of its contents or permissions changes
// the stamp, so a file with the same stamp need not be read again. Does not follow links. Errors:
// see SystemError().
Result<std::string> FileStamp(const std::filesystem::path& file);

// Renames the complete folder `draft` to `folder` in one step. A folder that is there gets the name
// `draft`, so `folder` leads to files at all times. Errors: see SystemError().
Status SwapFolderIn(const std::filesystem::path& draft, const std::filesystem::path& folder);

}  // namespace attune

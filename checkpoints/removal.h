#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace attune::checkpoints {

// Before the name of a folder that is being deleted.
inline constexpr std::string_view kRemovedPrefix = ".removed-";

// The folder's path while it is being deleted.
std::filesystem::path PathOfRemoved(const std::filesystem::path& folder);

// Deletes a folder, under that path, so that a crash never leaves half of one under its own: one
// that has it already is deleted as well, and what a deletion has left that was cut off. One that
// is not there is no error.
std::error_code RemoveFolder(const std::filesystem::path& folder);

}  // namespace attune::checkpoints

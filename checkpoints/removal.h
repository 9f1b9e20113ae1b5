#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace attune::checkpoints {

// Prefix of the name of a folder that is being deleted.
inline constexpr std::string_view kRemovedPrefix = ".removed-";

// The folder's path while it is being deleted.
std::filesystem::path PathOfRemoved(const std::filesystem::path& folder);

// Renames a folder to PathOfRemoved(), then deletes it. So a crash never leaves a partly deleted
// folder under its old name. Also deletes what an interrupted deletion of the same folder left.
// `folder` may be such a rest itself. A missing folder is not an error.
std::error_code RemoveFolder(const std::filesystem::path& folder);

}  // namespace attune::checkpoints

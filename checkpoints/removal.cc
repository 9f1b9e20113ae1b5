#include "checkpoints/removal.h"

#include <string>

namespace attune::checkpoints {

namespace fs = std::filesystem;

fs::path PathOfRemoved(const fs::path& folder) {
  return folder.parent_path() / (std::string(kRemovedPrefix) + folder.filename().string());
}

std::error_code RemoveFolder(const fs::path& folder) {
  std::error_code failed;
  fs::path removed = folder;
  if (!folder.filename().string().starts_with(kRemovedPrefix)) {
    removed = PathOfRemoved(folder);
    fs::remove_all(removed, failed);
    if (failed) return failed;
    fs::rename(folder, removed, failed);
    if (failed == std::errc::no_such_file_or_directory) return {};
    if (failed) return failed;
  }
  fs::remove_all(removed, failed);
  return failed;
}

}  // namespace attune::checkpoints

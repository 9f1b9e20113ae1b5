#include "checkpoints/removal.h"

#include <string>

namespace attune::checkpoints {

namespace fs = std::filesystem;

fs::path PathOfRemoved(const fs::path& folder) {
  return folder.parent_path() / (std::string(kRemovedPrefix) + folder.filename().string());
}

std::error_code RemoveFolder(const fs::path& folder) {
  std::error_code failed;
  fs::path doomed = folder;
  if (!folder.filename().string().starts_with(kRemovedPrefix)) {
    doomed = PathOfRemoved(folder);
    fs::remove_all(doomed, failed);
    if (failed) return failed;
    fs::rename(folder, doomed, failed);
    if (failed == std::errc::no_such_file_or_directory) return {};
    if (failed) return failed;
  }
  fs::remove_all(doomed, failed);
  return failed;
}

}  // namespace attune::checkpoints

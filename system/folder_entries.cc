#include "system/folder_entries.h"

#include <system_error>

namespace attune {

std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(folder, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed))
    entries.push_back(entry->path());
  return entries;
}

}  // namespace attune

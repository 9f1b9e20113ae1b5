#include "executor/environments/environment_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "base/parse_number.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/folder_entries.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// Folders with this prefix are being deleted.
constexpr std::string_view kDeletedPrefix = ".deleted-";

fs::path MarkOf(const fs::path& folder) { return folder / "complete"; }

bool IsComplete(const fs::path& folder) {
  std::error_code failed;
  return !folder.filename().string().starts_with('.') && fs::exists(MarkOf(folder), failed);
}

}  // namespace

bool EnvironmentCache::Use(const std::string& key) const {
  const fs::path folder = FolderOf(key);
  if (!IsComplete(folder)) return false;
  std::error_code failed;
  fs::last_write_time(MarkOf(folder), fs::file_time_type::clock::now(), failed);
  return true;
}

Status EnvironmentCache::Begin(const std::string& key) const {
  for (const fs::path& entry : EntriesOf(folder_)) {
    if (!IsComplete(entry)) Remove(entry);
  }
  std::error_code failed;
  fs::create_directories(FolderOf(key), failed);
  return failed ? SystemError("cannot make " + FolderOf(key).string(), failed.value()) : Status();
}

Status EnvironmentCache::Complete(const std::string& key) const {
  const fs::path folder = FolderOf(key);
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // One sync of the file system is faster than a sync of each of many thousand files.
  if (!opened || syncfs(opened.get()) != 0)
    return SystemError("cannot sync " + folder.string(), errno);
  return WriteWhole(MarkOf(folder), std::to_string(TotalFileBytes(folder)) + "\n", kReadableByAll);
}

void EnvironmentCache::Discard(const std::string& key) const { Remove(EnvironmentOf(key)); }

void EnvironmentCache::Evict(uint64_t bytes_max, std::chrono::seconds kept,
                             const std::set<std::string>& in_use) const {
  struct Entry {
    fs::path folder;
    fs::file_time_type used;
    uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  uint64_t all = 0;
  for (const fs::path& folder : EntriesOf(folder_)) {
    std::error_code gone;
    const Result<std::string> mark = ReadWord(MarkOf(folder));
    const auto bytes = mark.ok() ? ParseNumber<uint64_t>(*mark) : std::nullopt;
    const auto used = fs::last_write_time(MarkOf(folder), gone);
    if (gone || !bytes) continue;
    entries.push_back({folder, used, *bytes});
    all += *bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  const auto kept_from = fs::file_time_type::clock::now() - kept;
  for (const Entry& entry : entries) {
    if (all <= bytes_max || entry.used > kept_from) return;  // later entries are newer
    if (in_use.contains(entry.folder.filename())) continue;
    Remove(entry.folder);
    all -= entry.bytes;
  }
}

// Renames the folder first, so that an interrupted deletion leaves no environment that looks
// complete.
void EnvironmentCache::Remove(const fs::path& folder) const {
  const std::string name = folder.filename();
  fs::path removed = folder;
  std::error_code failed;
  if (!name.starts_with(kDeletedPrefix) && fs::exists(folder, failed)) {
    removed = folder_ / (std::string(kDeletedPrefix) + name);
    fs::remove_all(removed, failed);
    fs::rename(folder, removed, failed);
  }
  if (!failed) fs::remove_all(removed, failed);
  if (failed) logging::Warn("cannot delete {}: {}", folder.string(), failed.message());
}

}  // namespace attune::agent

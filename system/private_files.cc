#include "system/private_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "system/system_error.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersAccess = 0077;
constexpr int kUnchanged = -1;

std::atomic<int> umask_of_programs = kUnchanged;

bool Hide(const fs::path& path, mode_t kind) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || (status.st_mode & S_IFMT) != kind) return false;
  if ((status.st_mode & kOthersAccess) == 0) return true;
  if (status.st_uid != geteuid() || (status.st_mode & S_ISVTX) != 0) return false;
  return chmod(path.c_str(), status.st_mode & 07777 & ~kOthersAccess) == 0;
}

}  // namespace

void KeepFilesPrivate() {
  const mode_t before = umask(kOthersAccess);
  int unchanged = kUnchanged;
  umask_of_programs.compare_exchange_strong(unchanged, static_cast<int>(before));
}

std::optional<mode_t> UmaskOfPrograms() {
  const int known = umask_of_programs;
  return known == kUnchanged ? std::nullopt : std::optional(static_cast<mode_t>(known));
}

bool MakePrivate(const fs::path& folder, std::initializer_list<const char*> markers) {
  std::error_code failed;
  const bool marked = std::ranges::any_of(
      markers, [&](const char* marker) { return fs::exists(folder / marker, failed); });
  if (!marked && !fs::is_empty(folder, failed)) {
    struct stat status {};
    return stat(folder.c_str(), &status) == 0 && (status.st_mode & kOthersAccess) == 0;
  }
  if (!Hide(folder, S_IFDIR)) return false;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    Hide(entry->path(), S_IFREG);
  return true;
}

Status GiveToOwner(const fs::path& folder, const fs::path& path) {
  if (geteuid() != 0) return {};
  struct stat status {};
  if (stat(folder.c_str(), &status) == 0 && lchown(path.c_str(), status.st_uid, status.st_gid) == 0)
    return {};
  return SystemError("cannot make the owner of its folder the owner of " + path.string(), errno);
}

}  // namespace attune

#include "system/file_copies.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "system/system_error.h"

namespace attune {

Result<std::string> FileStamp(const std::filesystem::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0) return SystemError("cannot read " + file.string(), errno);
  const auto nanoseconds = [](const timespec& time) {
    return std::to_string(time.tv_sec) + '.' + std::to_string(time.tv_nsec);
  };
  return std::to_string(status.st_ino) + '-' + std::to_string(status.st_size) + '-' +
         nanoseconds(status.st_mtim) + '-' + nanoseconds(status.st_ctim);
}

Status SwapFolderIn(const std::filesystem::path& draft, const std::filesystem::path& folder) {
  if (rename(draft.c_str(), folder.c_str()) == 0) return {};
  if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) return {};
  return SystemError("cannot make " + folder.string(), errno);
}

}  // namespace attune

#include "server/folder/code_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "logging/log.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;
constexpr uint64_t kFreeBytesMin = 256 << 20;  // of the disk, for the database

}  // namespace

Error FileError(const std::string& what, const fs::path& path, int error) {
  return SystemError("cannot " + what + " " + path.string(), error);
}

Status MakeFolder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  return failed ? Status(FileError("make", folder, failed.value())) : Status();
}

Result<std::vector<fs::path>> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed))
    entries.push_back(entry->path());
  if (failed && failed != std::errc::no_such_file_or_directory)
    return FileError("list", folder, failed.value());
  return entries;
}

bool IsHashName(const fs::path& entry) { return IsSha256(entry.filename().string()); }

Status SyncFileSystem(const fs::path& folder) {
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || syncfs(opened.get()) != 0) return FileError("sync", folder, errno);
  return {};
}

Result<std::string> CopyRange(int from, off_t offset, uint64_t bytes, const fs::path& to) {
  const UniqueFd file(
      open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!file) return FileError("write", to, errno);
  Sha256 sha;
  std::string buffer;
  for (uint64_t done = 0; done < bytes;) {
    buffer.resize(std::min<uint64_t>(bytes - done, kCopyBytes));
    const ssize_t count =
        pread(from, buffer.data(), buffer.size(), offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FileError("read", to.parent_path(), count < 0 ? errno : EIO);
    buffer.resize(static_cast<size_t>(count));
    if (!WriteAt(file.get(), buffer, static_cast<off_t>(done)))
      return FileError("write", to, errno);
    sha.Add(buffer);
    done += buffer.size();
  }
  return sha.Hex();
}

Status CheckFreeSpace(const fs::path& folder) {
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  if (unknown || space.available >= kFreeBytesMin) return {};
  return Error{ErrorCode::kStorageFull, folder.string() + " has less than " +
                                            std::to_string(kFreeBytesMin >> 20) +
                                            " MiB free, so the server takes no code"};
}

Status AppendTo(const fs::path& path, uint64_t offset, std::string_view bytes) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!file) return FileError("write", path, errno);
  if (WriteAt(file.get(), bytes, static_cast<off_t>(offset))) return {};
  const int error = errno;
  if (ftruncate(file.get(), static_cast<off_t>(offset)) != 0)
    logging::Warn("cannot shorten {}", path.string());
  return FileError("write", path, error);
}

void RemoveAll(const fs::path& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  if (failed) logging::Warn("cannot delete {}: {}", path.string(), failed.message());
}

}  // namespace attune::server

#include "system/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/result.h"
#include "system/private_files.h"
#include "system/random_word.h"
#include "system/system_error.h"

namespace attune {
namespace {

constexpr size_t kReadBytes = 4096;  // per read

}  // namespace

Status WriteWhole(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  // The draft's name is random: another process, even on another host, may write the same file.
  std::string draft = path.parent_path() / ("." + path.filename().string() + ".XXXXXX");
  const UniqueFd file(mkostemp(draft.data(), O_CLOEXEC));
  if (!file) return SystemError("cannot write " + path.string(), errno);
  const mode_t allowed = UmaskOfPrograms() ? mode & kPrivate : mode;
  Status written = WriteAt(file.get(), text, 0) && fchmod(file.get(), allowed) == 0
                       ? Publish(file.get(), draft, path)
                       : SystemError("cannot write " + path.string(), errno);
  if (!written.ok()) unlink(draft.c_str());
  return written;
}

Status Publish(int file, const std::filesystem::path& draft, const std::filesystem::path& path) {
  if (fsync(file) != 0 || rename(draft.c_str(), path.c_str()) != 0)
    return SystemError("cannot write " + path.string(), errno);
  return SyncFolder(path.parent_path());
}

Status SyncFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const UniqueFd opened(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Not every filesystem can sync a folder.
  if (opened && (fsync(opened.get()) == 0 || errno == EINVAL)) return {};
  return SystemError("cannot sync " + path.string(), errno);
}

bool WriteAt(int file, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += count;
  }
  return true;
}

uint64_t TotalFileBytes(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  std::error_code failed;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder, failed);
       !failed && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(failed)) {
    std::error_code gone;
    const uint64_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

bool HasFreeSpace(const std::filesystem::path& folder) {
  std::string name = folder / ".space-XXXXXX";
  const UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file) return !IsStorageFull(errno);
  unlink(name.c_str());
  // Random bytes, because some file systems compress.
  return WriteAt(file.get(), RandomBytes(kFreeSpaceProbeBytes), 0) || !IsStorageFull(errno);
}

Result<std::string> ReadWhole(const std::filesystem::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file && errno == ENOENT) return text;
  std::array<char, kReadBytes> part;
  ssize_t count = -1;
  while (file && ((count = read(file.get(), part.data(), part.size())) > 0 ||
                  (count < 0 && errno == EINTR))) {
    if (count > 0) text.append(part.data(), static_cast<size_t>(count));
  }
  if (count < 0) return SystemError("cannot read " + path.string(), errno);
  return text;
}

Result<std::string> ReadWord(const std::filesystem::path& path) {
  Result<std::string> word = ReadWhole(path);
  if (word.ok()) word->erase(word->find_last_not_of(" \t\r\n") + 1);
  return word;
}

Result<UniqueFd> LockFile(const std::filesystem::path& path, mode_t mode) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode));
  if (!lock) return SystemError("cannot open " + path.string(), errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return SystemError("cannot lock " + path.string(), errno);
  return Error{ErrorCode::kConflict, path.string() + " is locked by another process"};
}

}  // namespace attune

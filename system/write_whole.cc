#include "system/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace attune {
namespace {

constexpr mode_t kReadableByAll = 0644;

Error Unwritten(const std::filesystem::path& path) {
  return Error{"cannot write " + path.string() + ": " + std::strerror(errno)};
}

}  // namespace

std::optional<Error> WriteWhole(const std::filesystem::path& path, std::string_view text) {
  // A name of its own: another process, on another host even, may be at the same file.
  std::string draft = path.parent_path() / ("." + path.filename().string() + ".XXXXXX");
  const UniqueFd file(mkostemp(draft.data(), O_CLOEXEC));
  if (!file) return Unwritten(path);
  errno = ENOSPC;  // of a write that was short
  if (write(file.get(), text.data(), text.size()) != std::ssize(text) ||
      fchmod(file.get(), kReadableByAll) != 0 || fsync(file.get()) != 0 ||
      rename(draft.c_str(), path.c_str()) != 0) {
    const Error error = Unwritten(path);
    unlink(draft.c_str());
    return error;
  }
  return SyncFolder(path.parent_path());
}

std::optional<Error> SyncFolder(const std::filesystem::path& folder) {
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Not every filesystem can.
  if (opened && (fsync(opened.get()) == 0 || errno == EINVAL)) return std::nullopt;
  return Unwritten(folder);
}

}  // namespace attune

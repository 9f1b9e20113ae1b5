#include "server/folder/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace attune::server {
namespace {

constexpr size_t kReadBytes = 4096;  // at once

}  // namespace

Error SystemError(const std::string& what, int number) {
  const bool full = number == ENOSPC || number == EDQUOT;
  return {full ? ErrorCode::kStorageFull : ErrorCode::kDenied, what + ": " + std::strerror(number)};
}

Result<std::string> ReadWord(const std::filesystem::path& path) {
  const std::string what = "cannot read " + path.string();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::string();
  if (file < 0) return SystemError(what, errno);
  std::string word;
  std::array<char, kReadBytes> part;
  ssize_t count = 0;
  while ((count = read(file, part.data(), part.size())) > 0)
    word.append(part.data(), static_cast<size_t>(count));
  const Error error = SystemError(what, errno);
  close(file);
  if (count < 0) return error;
  word.erase(word.find_last_not_of(" \t\r\n") + 1);
  return word;
}

Status WriteWhole(const std::filesystem::path& path, const std::string& text) {
  const std::string what = "cannot write " + path.string();
  const std::filesystem::path temporary = path.string() + ".new";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError(what, errno);
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file) == 0;
  const Error error = SystemError(what, errno);
  close(file);
  if (!written) {
    unlink(temporary.c_str());
    return error;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return SystemError(what, errno);
  const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && fsync(folder) == 0;
  const Error unsynced = SystemError("cannot sync " + path.parent_path().string(), errno);
  if (folder >= 0) close(folder);
  if (!synced) return unsynced;
  return {};
}

}  // namespace attune::server

#include "checkpoints/piece.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace attune::checkpoints {
namespace {

// Opens each folder of the path in turn, so that a link at any place is refused. O_NONBLOCK:
// opening a pipe does not wait.
UniqueFd OpenInside(const std::filesystem::path& folder, std::string_view name) {
  UniqueFd at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  while (at) {
    const size_t slash = name.find('/');
    const std::string part(name.substr(0, slash));
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    at = UniqueFd(openat(at.get(), part.c_str(), slash == name.npos ? flags : flags | O_DIRECTORY));
    if (slash == name.npos) break;
    name.remove_prefix(slash + 1);
  }
  return at;
}

Error Unreadable(const std::filesystem::path& path, const std::string& why) {
  return {ErrorCode::kNotFound, "cannot read " + path.string() + ": " + why};
}

}  // namespace

std::string NameFault(std::string_view name) {
  if (name.size() > kNameBytesMax)
    return "is longer than " + std::to_string(kNameBytesMax) + " bytes";
  if (name.find('\0') != name.npos) return "contains a zero byte";
  for (;;) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return "is not a path inside the folder";
    if (slash == name.npos) return "";
    name.remove_prefix(slash + 1);
  }
}

Result<OpenedFile> OpenFile(const std::filesystem::path& folder, const std::string& name) {
  if (const std::string fault = NameFault(name); !fault.empty())
    return Error{ErrorCode::kNotFound, '"' + name.substr(0, kNameBytesMax) + "\" " + fault};
  OpenedFile opened{.file = OpenInside(folder, name)};
  struct stat status {};
  if (!opened.file || fstat(opened.file.get(), &status) != 0)
    return Unreadable(folder / name, errno == ELOOP ? "it is a link, and links are not followed"
                                                    : std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return Unreadable(folder / name, "it is not a regular file");
  opened.bytes = static_cast<uint64_t>(status.st_size);
  return opened;
}

Result<Piece> ReadPiece(const std::filesystem::path& folder, const std::string& name,
                        uint64_t offset, uint64_t limit) {
  const Result<OpenedFile> opened = OpenFile(folder, name);
  if (!opened.ok()) return opened.error();
  Piece piece{.file_bytes = opened->bytes};
  const uint64_t left = piece.file_bytes - std::min(offset, piece.file_bytes);
  piece.data.resize(std::min({limit, left, uint64_t{kPieceBytesMax}}));
  size_t read = 0;
  while (read < piece.data.size()) {
    const ssize_t count = pread(opened->file.get(), piece.data.data() + read,
                                piece.data.size() - read, static_cast<off_t>(offset + read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unreadable(folder / name, std::strerror(errno));
    if (count == 0) return Unreadable(folder / name, "it became shorter while it was read");
    read += static_cast<size_t>(count);
  }
  return piece;
}

}  // namespace attune::checkpoints

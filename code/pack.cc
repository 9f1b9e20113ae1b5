#include "code/pack.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/system_error.h"

namespace attune::code {

uint64_t PackBytes(std::span<const File> files) {
  uint64_t bytes = 0;
  for (const File& file : files) bytes += file.bytes;
  return bytes;
}

std::vector<PackPart> PartsOfPack(std::span<const File> files, uint64_t offset, uint64_t limit) {
  std::vector<PackPart> parts;
  for (const File& file : files) {
    if (limit == 0) break;
    if (offset >= file.bytes) {
      offset -= file.bytes;
      continue;
    }
    const uint64_t bytes = std::min(file.bytes - offset, limit);
    parts.push_back({&file, offset, bytes});
    limit -= bytes;
    offset = 0;
  }
  return parts;
}

Result<checkpoints::Piece> ReadPack(std::span<const File> files, uint64_t offset, uint64_t limit,
                                    const OpenPacked& open) {
  checkpoints::Piece piece{.data = {}, .file_bytes = PackBytes(files)};
  limit = std::min<uint64_t>(limit, checkpoints::kPieceBytesMax);
  for (const PackPart& part : PartsOfPack(files, offset, limit)) {
    const Result<checkpoints::OpenedFile> opened = open(*part.file);
    if (!opened.ok()) return opened.error();
    size_t at = piece.data.size();
    piece.data.resize(at + part.bytes);
    for (uint64_t from = part.offset; at < piece.data.size();) {
      const ssize_t count = pread(opened->file.get(), piece.data.data() + at,
                                  piece.data.size() - at, static_cast<off_t>(from));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("cannot read " + part.file->path, errno);
      if (count == 0)
        return Error{ErrorCode::kCorrupt, part.file->path + " is shorter than in its manifest"};
      at += static_cast<size_t>(count);
      from += static_cast<uint64_t>(count);
    }
  }
  return piece;
}

}  // namespace attune::code

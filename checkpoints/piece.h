#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::checkpoints {

inline constexpr size_t kPieceBytesMax = 4 << 20;  // maximum length of a piece
inline constexpr size_t kNameBytesMax = 1'024;     // maximum length of a file's relative path

// Describes why a name is not a valid file name in a checkpoint's folder, as the end of a message
// that begins with the name. Empty if the name is valid. A valid name is a relative path with / as
// separator; no part is empty, `.` or `..`.
std::string NameFault(std::string_view name);

// A part of a file.
struct Piece {
  std::string data;  // shorter than requested only at the end of the file
  uint64_t file_bytes = 0;
};

// A file of a checkpoint that is open for reading.
struct OpenedFile {
  UniqueFd file;
  uint64_t bytes = 0;
};

// Opens a regular file inside the folder. Follows no links: neither the folder nor a part of the
// name may be a link. kNotFound, with a message that names the file, for every failure.
Result<OpenedFile> OpenFile(const std::filesystem::path& folder, const std::string& name);

// Opens a file like OpenFile() and reads at most `limit` bytes, and at most kPieceBytesMax, from
// `offset`. Returns no data after the end of the file.
Result<Piece> ReadPiece(const std::filesystem::path& folder, const std::string& name,
                        uint64_t offset, uint64_t limit);

}  // namespace attune::checkpoints

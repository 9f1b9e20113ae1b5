#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::checkpoints {

inline constexpr size_t kPieceBytesMax = 4 << 20;  // of a file, handed on at once
inline constexpr size_t kNameBytesMax = 1'024;     // of a file, with the folders that it lies in

// Why this is no file's name in a checkpoint's folder, to stand after the name; empty: it is one.
// Names are relative, with / between folders, of which none is empty, `.` or `..`.
std::string NameFault(std::string_view name);

// A part of a file.
struct Piece {
  std::string data;  // shorter than asked for only where the file ends
  uint64_t file_bytes = 0;
};

// A file of a checkpoint, to be read.
struct OpenedFile {
  UniqueFd file;
  uint64_t bytes = 0;
};

// Opens a regular file inside the folder. Follows no link, neither the folder itself nor a part of
// the name. kNotFound, with a message that names the file, for everything else.
Result<OpenedFile> OpenFile(const std::filesystem::path& folder, const std::string& name);

// Reads at most `limit` bytes, and never more than kPieceBytesMax, from `offset` on: none behind
// the end. What may be read is what OpenFile() opens.
Result<Piece> ReadPiece(const std::filesystem::path& folder, const std::string& name,
                        uint64_t offset, uint64_t limit);

}  // namespace attune::checkpoints

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "code/manifest.h"

// A pack: the contents of files, one after another. A snapshot travels as its manifest and a pack,
// so that thousands of small files need few messages.
namespace attune::code {

uint64_t PackBytes(std::span<const File> files);

// A part of one file of a pack.
struct PackPart {
  const File* file = nullptr;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

// The parts of at most `limit` bytes of the pack, from its byte `offset` on. Empty files have no
// part. The files must outlive the result.
std::vector<PackPart> PartsOfPack(std::span<const File> files, uint64_t offset, uint64_t limit);

// Opens a file of a pack for reading.
using OpenPacked = std::function<Result<checkpoints::OpenedFile>(const File& file)>;

// Reads at most `limit` bytes, and at most checkpoints::kPieceBytesMax. Piece::file_bytes is the
// size of the pack. Errors: those of `open`; kCorrupt: a file has another size than in the
// manifest.
Result<checkpoints::Piece> ReadPack(std::span<const File> files, uint64_t offset, uint64_t limit,
                                    const OpenPacked& open);

}  // namespace attune::code

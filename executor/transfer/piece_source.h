#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// Makes the error for a piece that cannot be read now.
inline Error UnreadableError(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

// A source of checkpoints of other executors, and of snapshots of code.
class PieceSource {
 public:
  struct Answer {
    Result<checkpoints::Piece> piece;
    bool is_final = false;  // the error is permanent: the file does not exist
    // The executor or the object store that sent it; empty: it came through the server.
    std::string directly_from;
    bool is_from_store = false;  // `directly_from` is an object store
  };

  virtual ~PieceSource() = default;
  // Reads a piece of a file; the source chooses its size. Blocks. `memory` is the buffer of an
  // earlier piece, for reuse. Read() and Close() may be called on any thread, but not concurrently.
  virtual Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
                      std::string memory) = 0;
  virtual void Close() = 0;  // ends reading of the current files
  // Makes the current Read() and all reads until Close() fail. Does not block. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace attune::agent

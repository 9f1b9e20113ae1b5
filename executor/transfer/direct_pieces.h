#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "executor/gang/spec.h"
#include "executor/gang/words.h"
#include "executor/transfer/checkpoint_fetcher.h"
#include "executor/transfer/direct_wire.h"
#include "system/unique_fd.h"

namespace attune::agent {

// Checkpoints of other executors, from these directly where they are reached, and else by way of
// another source. A file comes whole over one connection, of which each Read() takes a piece.
class DirectPieces final : public PieceSource {
 public:
  // `otherwise` outlives the object.
  explicit DirectPieces(PieceSource& otherwise, DirectTimeouts timeouts = {})
      : otherwise_(otherwise), timeouts_(timeouts) {}

  // Drops those of `checkpoint.servers` that fail.
  Answer Read(gang::FarCheckpoint& checkpoint, const std::string& file, uint64_t offset,
              std::string memory) override;
  void Close() override;
  void Cancel() override;

 private:
  // Each returns what is wrong; empty: nothing.
  std::string ReadFrom(const gang::FarCheckpoint& checkpoint, const std::string& file,
                       uint64_t offset, checkpoints::Piece& piece);
  std::string Connect(const gang::PieceServer& server);
  std::string Ask(const gang::FarCheckpoint& checkpoint, const std::string& file, uint64_t offset);
  void Disconnect();
  bool IsCancelled();

  PieceSource& otherwise_;
  const DirectTimeouts timeouts_;

  std::mutex mutex_;
  UniqueFd socket_;         // made and closed by the reader, under mutex_; of the first server
  bool cancelled_ = false;  // under mutex_

  // The reader's: what is on its way.
  std::string file_;
  uint64_t at_ = 0;
  uint64_t file_bytes_ = 0;
};

}  // namespace attune::agent

#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"
#include "executor/transfer/direct_wire.h"
#include "executor/transfer/piece_source.h"
#include "system/unique_fd.h"

namespace attune::agent {

// Reads checkpoints directly from other executors, or from a fallback source if they cannot be
// reached. A connection transfers a complete file; each Read() takes a piece of it.
class DirectPieces final : public PieceSource {
 public:
  // `fallback` must outlive this object.
  explicit DirectPieces(PieceSource& fallback, DirectTimeouts timeouts = {})
      : fallback_(fallback), timeouts_(timeouts) {}

  // Removes failing servers from `files.servers`.
  Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
              std::string memory) override;
  void Close() override;
  void Cancel() override;

 private:
  // Each returns the error; empty: success.
  std::string ReadFrom(const gang::RemoteFiles& files, const std::string& file, uint64_t offset,
                       checkpoints::Piece& piece);
  std::string Connect(const gang::PieceServer& server);
  std::string RequestFile(const gang::RemoteFiles& files, const std::string& file, uint64_t offset);
  void Disconnect();
  bool IsCancelled();

  PieceSource& fallback_;
  const DirectTimeouts timeouts_;

  std::mutex mutex_;
  UniqueFd socket_;         // of the first server; only Read() and Close() change it, under mutex_
  bool cancelled_ = false;  // under mutex_

  // The file in transfer; used only by Read() and Close().
  std::string file_;
  uint64_t at_ = 0;
  uint64_t file_bytes_ = 0;
};

}  // namespace attune::agent

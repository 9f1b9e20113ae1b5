#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "executor/gang/spec.h"
#include "executor/transfer/piece_source.h"
#include "object_storage/settings.h"
#include "object_storage/store.h"
#include "object_storage/stored_folder.h"

namespace attune::agent {

// Fewer attempts than usual, because the server may have the files, too.
inline constexpr object_storage::StoreOptions kReadingOptions{.tries = 3};

// Reads checkpoints from their copies in object stores, or from a fallback source if there is no
// copy or it cannot be read.
class StorePieces final : public PieceSource {
 public:
  // `environment` is that of rclone. Variables of a copy replace some of it. `fallback` must
  // outlive this object.
  StorePieces(PieceSource& fallback, object_storage::Environment environment,
              const object_storage::StoreOptions& options = kReadingOptions)
      : fallback_(fallback), environment_(std::move(environment)), options_(options) {}

  // Removes `files.stored` after an error. Then errors of the fallback contain that error.
  Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
              std::string memory) override;
  void Close() override;
  void Cancel() override;

 private:
  Result<checkpoints::Piece> ReadFromStore(const gang::StoredCopy& copy, const std::string& file,
                                           uint64_t offset, std::string memory);
  Status Open(const gang::StoredCopy& copy);
  std::stop_token StopToken();

  PieceSource& fallback_;
  const object_storage::Environment environment_;
  const object_storage::StoreOptions options_;

  std::mutex mutex_;
  std::stop_source cancel_;  // under mutex_

  // Used only by Read() and Close().
  std::optional<object_storage::ObjectStore> store_;
  std::optional<object_storage::StoredFolder> folder_;  // of store_
  std::string problem_;                                 // why the copy could not be read
  bool is_gone_ = false;                                // the copy does not have the file
};

}  // namespace attune::agent

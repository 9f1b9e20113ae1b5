#include "executor/transfer/store_pieces.h"

#include <utility>

#include "logging/log.h"
#include "object_storage/address.h"

namespace attune::agent {

PieceSource::Answer StorePieces::Read(gang::RemoteFiles& files, const std::string& file,
                                      uint64_t offset, std::string memory) {
  if (files.stored) {
    Result<checkpoints::Piece> piece =
        ReadFromStore(*files.stored, file, offset, std::exchange(memory, {}));
    if (piece.ok())
      return {.piece = std::move(piece),
              .directly_from = object_storage::ToString(store_->address()),
              .is_from_store = true};
    if (StopToken().stop_requested()) return {.piece = UnreadableError("cancelled")};
    problem_ = piece.error().message;
    is_gone_ = folder_ && piece.error().code == ErrorCode::kNotFound;
    logging::Warn("the copy of {} cannot be read: {}; asking the server", gang::ToString(files),
                  problem_);
    folder_.reset();
    files.stored.reset();
  }
  Answer answer = fallback_.Read(files, file, offset, std::move(memory));
  if (answer.piece.ok() || problem_.empty()) return answer;
  const Error& error = answer.piece.error();
  return {.piece = Error{error.code, error.message + "; its copy cannot be read: " + problem_},
          .is_final = answer.is_final && is_gone_};
}

Result<checkpoints::Piece> StorePieces::ReadFromStore(const gang::StoredCopy& copy,
                                                      const std::string& file, uint64_t offset,
                                                      std::string memory) {
  if (!folder_) {
    if (const Status opened = Open(copy); !opened.ok()) return opened.error();
  }
  return folder_->Read(file, offset, std::move(memory));
}

Status StorePieces::Open(const gang::StoredCopy& copy) {
  Result<object_storage::ObjectStore> store =
      object_storage::ObjectStore::Open(copy.address, environment_, copy.environment, options_);
  if (!store.ok()) return store.error();
  store_.emplace(*std::move(store));
  Result<object_storage::StoredFolder> folder =
      object_storage::StoredFolder::Open(*store_, copy.path, StopToken());
  if (!folder.ok()) return folder.error();
  folder_.emplace(*std::move(folder));
  return {};
}

std::stop_token StorePieces::StopToken() {
  const std::lock_guard lock(mutex_);
  return cancel_.get_token();
}

void StorePieces::Close() {
  folder_.reset();
  store_.reset();
  problem_.clear();
  is_gone_ = false;
  {
    const std::lock_guard lock(mutex_);
    cancel_ = std::stop_source();
  }
  fallback_.Close();
}

void StorePieces::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancel_.request_stop();
  }
  fallback_.Cancel();
}

}  // namespace attune::agent

#include "object_storage/stored_folder.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "object_storage/errors.h"

namespace attune::object_storage {

Result<StoredFolder> StoredFolder::Open(const ObjectStore& store, std::string path,
                                        std::stop_token stop) {
  Result<StoredFiles> files = store.List(path, stop);
  if (!files.ok()) return files.error();
  return StoredFolder(store, std::move(path), *std::move(files), std::move(stop));
}

StoredFolder::StoredFolder(const ObjectStore& store, std::string path, StoredFiles files,
                           std::stop_token stop)
    : store_(&store), path_(std::move(path)), files_(std::move(files)), stop_(std::move(stop)) {}

Result<checkpoints::Piece> StoredFolder::Read(const std::string& file, uint64_t offset,
                                              std::string memory) {
  const auto found = files_.find(file);
  if (found == files_.end())
    return store_->ErrorOf("cannot read", path_ + '/' + file,
                           {ErrorCode::kNotFound, "there is no such file"});
  checkpoints::Piece piece{.data = std::move(memory), .file_bytes = found->second};
  const uint64_t left = piece.file_bytes - std::min(offset, piece.file_bytes);
  piece.data.resize(std::min<uint64_t>(left, checkpoints::kPieceBytesMax));
  size_t done = 0;
  for (int number = 1; done < piece.data.size();) {
    const Result<size_t> count =
        ReadSome(file, offset + done, piece.data.data() + done, piece.data.size() - done);
    if (count.ok()) {
      done += *count;
      continue;
    }
    stream_.reset();
    if (count.error().code != ErrorCode::kUnavailable || !store_->WaitForAttempt(++number, stop_))
      return store_->ErrorOf("cannot read", path_ + '/' + file, count.error());
  }
  return piece;
}

// Reads at least one byte, and at most `bytes_max`.
Result<size_t> StoredFolder::ReadSome(const std::string& file, uint64_t offset, char* to,
                                      size_t bytes_max) {
  if (!stream_ || stream_->file != file || stream_->offset != offset) {
    stream_.reset();  // one rclone at a time
    Result<Process> process = store_->StartReading(path_, file, offset);
    if (!process.ok()) return process.error();
    stream_.emplace(file, offset, *std::move(process));
  }
  Result<size_t> count = stream_->process.ReadSome(to, bytes_max, stop_);
  if (!count.ok()) return count;
  stream_->offset += *count;
  if (*count > 0) return count;
  const Result<ProcessEnd> end = stream_->process.Wait(stop_);
  if (!end.ok()) return end.error();
  if (end->exit_code != 0) return RcloneError(*end, store_->environment_);
  return Error{ErrorCode::kNotFound,
               "it ended after " + std::to_string(offset) + " bytes; it was deleted or replaced"};
}

}  // namespace attune::object_storage

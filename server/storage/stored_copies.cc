#include "server/storage/stored_copies.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "checkpoints/manifest.h"

namespace attune::server {
namespace {

Error NoCopy(const std::string& address, const std::string& path) {
  return {ErrorCode::kConflict, UrlOf(address, path) + " is not complete"};
}

}  // namespace

StoredCopies::StoredCopies(Stores& stores) : stores_(stores), closer_([this] { CloseIdle(); }) {}

StoredCopies::~StoredCopies() {
  Stop();
  closer_.join();
}

Result<checkpoints::Piece> StoredCopies::Read(const Part& part) {
  Result<Folder> folder = Take(part);
  if (!folder.ok()) return folder.error();
  const auto& files = folder->files.files();
  if (!files.contains(std::string(checkpoints::kManifestFile)))
    return NoCopy(part.address, part.path);
  if (!files.contains(part.file)) {
    Return(*std::move(folder));
    return Error{ErrorCode::kNotFound, "the checkpoint has no file " + part.file};
  }
  if (Status read = ReadPiece(part, *folder); !read.ok()) {
    if (read.error().code != ErrorCode::kNotFound) return read.error();
    return NoCopy(part.address, part.path);  // it was deleted since the folder was opened
  }
  const std::string_view data(folder->piece.data);
  const uint64_t begin = std::min<uint64_t>(part.offset - folder->offset, data.size());
  checkpoints::Piece piece{.data = std::string(data.substr(begin, part.limit_bytes)),
                           .file_bytes = folder->piece.file_bytes};
  Return(*std::move(folder));
  return piece;
}

// Makes the folder's piece one that has the part's first byte.
Status StoredCopies::ReadPiece(const Part& part, Folder& folder) {
  const bool has_it = folder.file == part.file && folder.offset <= part.offset &&
                      part.offset < folder.offset + folder.piece.data.size();
  if (has_it) return {};
  Result<checkpoints::Piece> piece =
      folder.files.Read(part.file, part.offset, std::move(folder.piece.data));
  if (!piece.ok()) return piece.error();
  folder.file = part.file;
  folder.offset = part.offset;
  folder.piece = *std::move(piece);
  return {};
}

Result<StoredCopies::Folder> StoredCopies::Take(const Part& part) {
  {
    const std::lock_guard lock(mutex_);
    const auto idle = std::ranges::find_if(idle_, [&](const Folder& folder) {
      return folder.address == part.address && folder.path == part.path;
    });
    if (idle != idle_.end()) {
      Folder taken = std::move(*idle);
      idle_.erase(idle);
      return taken;
    }
  }
  Result<Stores::Store> store = stores_.Open(part.address);
  if (!store.ok()) return store.error();
  auto opened = object_storage::StoredFolder::Open(**store, part.path, stop_.get_token());
  if (!opened.ok()) return opened.error();
  return Folder{.address = part.address,
                .path = part.path,
                .store = *std::move(store),
                .files = *std::move(opened),
                .used = Clock::now()};
}

void StoredCopies::Return(Folder folder) {
  std::list<Folder> closed;  // destroyed without the lock, because that ends a process
  const std::lock_guard lock(mutex_);
  if (stop_.stop_requested()) return;
  folder.used = Clock::now();
  idle_.push_back(std::move(folder));
  changed_.notify_all();
  if (idle_.size() > kIdleMax) closed.splice(closed.end(), idle_, idle_.begin());
}

void StoredCopies::CloseIdle() {
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested()) {
    if (idle_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto close_at = idle_.front().used + kIdleTime;
    if (Clock::now() < close_at) {
      changed_.wait_until(lock, close_at);
      continue;
    }
    std::list<Folder> closed;
    closed.splice(closed.end(), idle_, idle_.begin());
    lock.unlock();
    closed.clear();
    lock.lock();
  }
}

void StoredCopies::Stop() {
  std::list<Folder> closed;
  stop_.request_stop();
  const std::lock_guard lock(mutex_);
  closed.swap(idle_);
  changed_.notify_all();
}

}  // namespace attune::server

#include "server/folder/code_storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/lines.h"
#include "base/message_limits.h"
#include "code/pack.h"
#include "code/tree.h"
#include "logging/log.h"
#include "server/folder/code_files.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCachedManifests = 8;
constexpr std::chrono::hours kUploadedKept{1};  // time for a client to create its sweep
constexpr std::chrono::hours kUnfinishedKept{24};
constexpr size_t kUnfinishedMax = 64;
constexpr size_t kDigestPrefixBytes = 7;  // sha256:

std::string HexOf(const std::string& digest) { return digest.substr(kDigestPrefixBytes); }
std::string DigestOfName(const std::string& hex) { return "sha256:" + hex; }

Status CheckDigest(const std::string& digest) {
  return IsDigest(digest) ? Status() : Invalid("'" + digest + "' is not the digest of a snapshot");
}

Error NoSnapshot(const std::string& digest) {
  return {ErrorCode::kNotFound, "the server has no code with the digest " + digest};
}

uint64_t SizeOf(const fs::path& path) {
  std::error_code absent;
  const uint64_t size = fs::file_size(path, absent);
  return absent ? 0 : size;
}

Error WrongOffset(uint64_t offset, uint64_t bytes) {
  return {ErrorCode::kConflict, "the piece begins at byte " + std::to_string(offset) +
                                    ", but the server has " + std::to_string(bytes) +
                                    " bytes: continue there"};
}

}  // namespace

fs::path CodeStorage::Snapshot(const std::string& digest) const {
  return folder_ / "snapshots" / HexOf(digest);
}

fs::path CodeStorage::Upload(const std::string& digest) const {
  return folder_ / "uploads" / HexOf(digest);
}

// ---- uploads ------------------------------------------------------------------------------------

Result<CodeStorage::Progress> CodeStorage::Find(const std::string& digest) {
  if (Status valid = CheckDigest(digest); !valid.ok()) return valid.error();
  const std::lock_guard lock(mutex_);
  return FindLocked(digest);
}

// A disk may lose files. Then the client sends them again.
bool CodeStorage::IsComplete(const std::string& digest) {
  if (complete_.contains(digest)) return true;
  const Result<std::string> text = ReadWhole(Snapshot(digest));
  if (!text.ok() || text->empty() || code::DigestOf(*text) != digest) return false;
  const Result<code::Manifest> manifest = code::ParseManifest(*text);
  if (!manifest.ok() || !std::ranges::all_of(manifest->files, [this](const code::File& file) {
        return HasFile(file);
      }))
    return false;
  complete_.insert(digest);
  return true;
}

bool CodeStorage::HasFile(const code::File& file) const {
  std::error_code absent;
  return file.bytes == 0 || (fs::file_size(FileOf(file.sha256), absent) == file.bytes && !absent);
}

Result<CodeStorage::Progress> CodeStorage::FindLocked(const std::string& digest) {
  if (IsComplete(digest))
    return Progress{.complete = true, .manifest_bytes = SizeOf(Snapshot(digest))};
  const fs::path upload = Upload(digest);
  const Result<std::string> missing = ReadWhole(upload / "missing");
  if (!missing.ok()) return missing.error();
  const std::vector<std::string_view> hashes = SplitLines(*missing);
  return Progress{.complete = false,
                  .manifest_bytes = SizeOf(upload / "manifest"),
                  .missing = {hashes.begin(), hashes.end()},
                  .pack_bytes = SizeOf(upload / "pack")};
}

Result<CodeStorage::Progress> CodeStorage::AddManifest(const std::string& digest, uint64_t offset,
                                                       std::string_view bytes, bool last) {
  if (Status valid = CheckDigest(digest); !valid.ok()) return valid.error();
  const std::lock_guard lock(mutex_);
  const Result<Progress> before = FindLocked(digest);
  if (!before.ok() || before->complete) return before;
  if (offset != before->manifest_bytes || !before->missing.empty())
    return WrongOffset(offset, before->manifest_bytes);
  const fs::path upload = Upload(digest);
  if (offset + bytes.size() > code::kManifestBytesMax)
    return DropUpload(digest, Invalid("the manifest is longer than " +
                                      std::to_string(code::kManifestBytesMax) + " bytes"));
  if (Status checked = CheckNewUpload(upload); !checked.ok()) return checked.error();
  if (Status made = MakeFolder(upload); !made.ok()) return made.error();
  if (Status added = AppendTo(upload / "manifest", offset, bytes); !added.ok())
    return added.error();
  return last ? FinishManifest(digest) : FindLocked(digest);
}

Status CodeStorage::CheckNewUpload(const fs::path& upload) const {
  std::error_code absent;
  if (fs::exists(upload, absent)) return {};
  if (Status made = MakeFolder(folder_ / "uploads"); !made.ok()) return made;
  if (Status space = CheckFreeSpace(folder_); !space.ok()) return space;
  const auto uploads = EntriesOf(folder_ / "uploads");
  if (!uploads.ok()) return uploads.error();
  if (uploads->size() < kUnfinishedMax) return {};
  return Error{ErrorCode::kUnavailable,
               std::to_string(kUnfinishedMax) + " uploads of code are unfinished; try again later"};
}

Result<CodeStorage::Progress> CodeStorage::FinishManifest(const std::string& digest) {
  const Result<std::string> text = ReadWhole(Upload(digest) / "manifest");
  if (!text.ok()) return text.error();
  if (code::DigestOf(*text) != digest)
    return DropUpload(digest, {ErrorCode::kCorrupt, "the manifest does not have its digest"});
  const Result<code::Manifest> manifest = code::ParseManifest(*text);
  if (!manifest.ok()) return DropUpload(digest, manifest.error());
  if (manifest->bytes() > bytes_max_)
    return DropUpload(digest, Invalid("the code has " + std::to_string(manifest->bytes()) +
                                      " bytes, but this server takes at most " +
                                      std::to_string(bytes_max_) + ": exclude some files"));
  return ListMissing(digest, *manifest);
}

Result<CodeStorage::Progress> CodeStorage::ListMissing(const std::string& digest,
                                                       const code::Manifest& manifest) {
  std::set<std::string> listed;
  std::string missing;
  for (const code::File& file : manifest.files) {
    if (HasFile(file)) continue;
    if (listed.insert(file.sha256).second) missing += file.sha256 + '\n';
  }
  const fs::path upload = Upload(digest);
  std::error_code none;
  fs::remove(upload / "pack", none);
  if (Status written = WriteWhole(upload / "missing", missing, kPrivate); !written.ok())
    return written.error();
  return missing.empty() ? Finish(digest) : FindLocked(digest);
}

Result<CodeStorage::Progress> CodeStorage::AddPack(const std::string& digest, uint64_t offset,
                                                   std::string_view bytes) {
  if (Status valid = CheckDigest(digest); !valid.ok()) return valid.error();
  const std::lock_guard lock(mutex_);
  const Result<Progress> before = FindLocked(digest);
  if (!before.ok() || before->complete) return before;
  if (before->missing.empty() || offset != before->pack_bytes)
    return WrongOffset(offset, before->pack_bytes);
  if (Status space = CheckFreeSpace(folder_); !space.ok()) return space.error();
  const fs::path pack = Upload(digest) / "pack";
  if (Status added = AppendTo(pack, offset, bytes); !added.ok()) return added.error();
  return Finish(digest);
}

// The manifest of an upload. It is read once, because pieces of the pack come often.
Result<std::shared_ptr<const code::Manifest>> CodeStorage::ManifestOfUpload(
    const std::string& digest) {
  if (const auto known = uploading_.find(digest); known != uploading_.end()) return known->second;
  const Result<std::string> text = ReadWhole(Upload(digest) / "manifest");
  if (!text.ok()) return text.error();
  Result<code::Manifest> manifest = code::ParseManifest(*text);
  if (!manifest.ok()) return DropUpload(digest, manifest.error());
  if (uploading_.size() >= kCachedManifests) uploading_.clear();
  return uploading_[digest] = std::make_shared<const code::Manifest>(*std::move(manifest));
}

// Completes the snapshot if all bytes of the pack are there.
Result<CodeStorage::Progress> CodeStorage::Finish(const std::string& digest) {
  const auto known = ManifestOfUpload(digest);
  if (!known.ok()) return known.error();
  const std::shared_ptr<const code::Manifest> manifest = *known;
  Result<Progress> progress = FindLocked(digest);
  if (!progress.ok()) return progress;

  std::map<std::string_view, const code::File*> by_hash;
  for (const code::File& file : manifest->files) by_hash.emplace(file.sha256, &file);
  std::vector<const code::File*> sent;
  uint64_t bytes = 0;
  for (const std::string& hash : progress->missing) {
    const auto file = by_hash.find(hash);
    if (file == by_hash.end()) return ListMissing(digest, *manifest);
    sent.push_back(file->second);
    bytes += file->second->bytes;
  }
  if (progress->pack_bytes < bytes) {
    progress->missing.clear();  // the client has the list
    return progress;
  }
  if (progress->pack_bytes > bytes)
    return DropUpload(digest, {ErrorCode::kCorrupt, "more bytes arrived than the files have"});

  if (Status stored = StoreFiles(digest, sent); !stored.ok()) {
    return stored.error().code == ErrorCode::kCorrupt ? DropUpload(digest, stored.error())
                                                      : stored.error();
  }
  // Another snapshot with some of the files may have been deleted since the list was made.
  const bool has_all = std::ranges::all_of(
      manifest->files, [this](const code::File& file) { return HasFile(file); });
  if (!has_all) return ListMissing(digest, *manifest);
  if (Status added = AddSnapshot(digest, code::ToText(*manifest)); !added.ok())
    return added.error();
  uploading_.erase(digest);
  RemoveAll(Upload(digest));
  return FindLocked(digest);
}

Status CodeStorage::AddSnapshot(const std::string& digest, const std::string& manifest_text) {
  for (const fs::path& made : {folder_ / "files", folder_ / "snapshots"}) {
    if (Status folder = MakeFolder(made); !folder.ok()) return folder;
  }
  if (Status synced = SyncFileSystem(folder_); !synced.ok()) return synced;
  if (Status written = WriteWhole(Snapshot(digest), manifest_text, kPrivate); !written.ok())
    return written;
  uploaded_[digest] = Clock::now();
  return {};
}

// Splits the pack into files.
Status CodeStorage::StoreFiles(const std::string& digest,
                               const std::vector<const code::File*>& sent) {
  if (Status made = MakeFolder(folder_ / "files"); !made.ok()) return made;
  const fs::path path = Upload(digest) / "pack";
  const UniqueFd pack(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!pack && !sent.empty()) return FileError("read", path, errno);
  off_t offset = 0;
  for (const code::File* file : sent) {
    const fs::path draft = Upload(digest) / "file";
    const Result<std::string> hash = CopyRange(pack.get(), offset, file->bytes, draft);
    if (!hash.ok()) return hash.error();
    if (*hash != file->sha256)
      return Error{ErrorCode::kCorrupt, file->path +
                                            " does not have its SHA-256: it changed "
                                            "while it was sent; send the code again"};
    std::error_code failed;
    fs::rename(draft, FileOf(file->sha256), failed);
    if (failed) return FileError("write", FileOf(file->sha256), failed.value());
    offset += static_cast<off_t>(file->bytes);
  }
  return {};
}

Error CodeStorage::DropUpload(const std::string& digest, const Error& error) {
  uploading_.erase(digest);
  RemoveAll(Upload(digest));
  return error;
}

// ---- reading ------------------------------------------------------------------------------------

Result<std::shared_ptr<const code::Manifest>> CodeStorage::ReadManifest(const std::string& digest) {
  {
    const std::lock_guard lock(cache_mutex_);
    for (const auto& [known, manifest] : cache_) {
      if (known == digest) return manifest;
    }
  }
  const Result<std::string> text = ReadWhole(Snapshot(digest));
  if (!text.ok()) return text.error();
  if (text->empty()) return NoSnapshot(digest);
  Result<code::Manifest> manifest = code::ParseManifest(*text);
  if (!manifest.ok())
    return Error{ErrorCode::kNotFound,
                 Snapshot(digest).string() + " is damaged: " + manifest.error().message};
  auto shared = std::make_shared<const code::Manifest>(*std::move(manifest));
  const std::lock_guard lock(cache_mutex_);
  cache_.emplace_back(digest, shared);
  if (cache_.size() > kCachedManifests) cache_.pop_front();
  return std::shared_ptr<const code::Manifest>(shared);
}

Result<checkpoints::Piece> CodeStorage::Read(const std::string& digest, std::string_view part,
                                             uint64_t offset, uint64_t limit) {
  if (Status valid = CheckDigest(digest); !valid.ok()) return valid.error();
  if (part == code::kManifestPart) {
    auto piece = checkpoints::ReadPiece(folder_ / "snapshots", HexOf(digest), offset, limit);
    return piece.ok() ? std::move(piece) : NoSnapshot(digest);
  }
  if (part != code::kPackPart)
    return Error{ErrorCode::kNotFound, "a snapshot of code has no part '" + std::string(part) +
                                           "', only manifest and pack"};
  const auto manifest = ReadManifest(digest);
  if (!manifest.ok()) return manifest.error();
  return code::ReadPack((*manifest)->files, offset, limit, [this](const code::File& file) {
    return checkpoints::OpenFile(folder_ / "files", file.sha256);
  });
}

// ---- deletion -----------------------------------------------------------------------------------

std::shared_ptr<void> CodeStorage::Keep(const std::string& digest) {
  if (!CheckDigest(digest).ok()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!IsComplete(digest)) return nullptr;
  ++kept_[digest];
  return std::shared_ptr<void>(this, [this, digest](void*) {
    const std::lock_guard release(mutex_);
    if (--kept_[digest] == 0) kept_.erase(digest);
  });
}

Result<CodeStorage::KeptSnapshot> CodeStorage::KeepManifest(const std::string& digest) {
  if (Status valid = CheckDigest(digest); !valid.ok()) return valid.error();
  std::shared_ptr<void> kept = Keep(digest);
  if (kept == nullptr) return NoSnapshot(digest);
  auto manifest = ReadManifest(digest);
  if (!manifest.ok()) return manifest.error();
  return KeptSnapshot{std::move(kept), *std::move(manifest)};
}

// The mutex is locked all the time, so that no sweep begins to use a snapshot between the list and
// the deletion.
Status CodeStorage::RemoveUnused(const std::function<Result<std::set<std::string>>()>& list_used) {
  const std::lock_guard lock(mutex_);
  std::error_code absent;
  if (!fs::exists(folder_, absent)) return {};
  const Result<std::set<std::string>> used = list_used();
  if (!used.ok()) return used.error();
  const auto now = Clock::now();
  for (const std::string& digest : *used) uploaded_.erase(digest);  // its sweep exists
  std::erase_if(uploaded_, [&](const auto& each) { return now - each.second > kUploadedKept; });
  const auto snapshots = EntriesOf(folder_ / "snapshots");
  if (!snapshots.ok()) return snapshots.error();
  const auto uploads = EntriesOf(folder_ / "uploads");
  if (!uploads.ok()) return uploads.error();
  // A crash may have left files without a snapshot.
  bool removed = !std::exchange(removed_unused_, true);
  for (const fs::path& entry : *snapshots) {
    const std::string digest = DigestOfName(entry.filename());
    if (used->contains(digest) || kept_.contains(digest) || uploaded_.contains(digest)) continue;
    RemoveAll(entry);
    removed = true;
    complete_.erase(digest);
    const std::lock_guard cache_lock(cache_mutex_);
    std::erase_if(cache_, [&](const auto& each) { return each.first == digest; });
  }
  for (const fs::path& entry : *uploads) {
    auto written = fs::last_write_time(entry, absent);
    for (const char* part : {"manifest", "pack"}) {
      std::error_code none;
      const auto time = fs::last_write_time(entry / part, none);
      if (!none) written = std::max(written, time);
    }
    if (fs::file_time_type::clock::now() - written > kUnfinishedKept) RemoveAll(entry);
  }
  const auto scratches = EntriesOf(folder_ / "patches");
  if (!scratches.ok()) return scratches.error();
  for (const fs::path& entry : *scratches) {
    if (!patching_.contains(entry)) RemoveAll(entry);
  }
  if (!removed) return {};
  const Result<std::set<std::string>> hashes = HashesInUse();
  if (!hashes.ok()) return hashes.error();
  const auto files = EntriesOf(folder_ / "files");
  if (!files.ok()) return files.error();
  for (const fs::path& entry : *files) {
    if (!hashes->contains(entry.filename())) RemoveAll(entry);
  }
  return {};
}

Result<std::set<std::string>> CodeStorage::HashesInUse() const {
  std::set<std::string> hashes;
  const auto snapshots = EntriesOf(folder_ / "snapshots");
  if (!snapshots.ok()) return snapshots.error();
  for (const fs::path& entry : *snapshots) {
    const Result<std::string> text = ReadWhole(entry);
    if (!text.ok()) return text.error();
    const Result<code::Manifest> manifest = code::ParseManifest(*text);
    if (!manifest.ok()) continue;  // no executor can use it
    for (const code::File& file : manifest->files) hashes.insert(file.sha256);
  }
  return hashes;
}

}  // namespace attune::server

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "code/manifest.h"
#include "code/patch.h"

namespace attune::server {

// The snapshots of code in the server's data folder, which clients send and executors fetch. Files
// with the same contents are stored once:
//
//   files/HASH          a file of some snapshots
//   snapshots/DIGEST    the manifest of a complete snapshot
//   uploads/DIGEST/     a snapshot that a client sends: its manifest, the list of files to send
//                       ("missing"), and the bytes of these files so far ("pack")
//   patches/NAME/       the scratch folder of a call of ApplyPatches()
//
// A crash leaves complete snapshots, uploads that continue, or files that RemoveUnused() deletes.
// Any thread.
//
// All functions return kInvalid if `digest` is not a digest; other errors are those of the system
// (SystemError).
class CodeStorage {
 public:
  static constexpr size_t kPatchBytesMax = code::kPatchBytesMax;

  // Creates `folder` at the first upload.
  CodeStorage(std::filesystem::path folder, uint64_t bytes_max)
      : folder_(std::move(folder)), bytes_max_(bytes_max) {}

  uint64_t bytes_max() const { return bytes_max_; }  // of the files of a snapshot

  // How much of a snapshot the server has.
  struct Progress {
    bool complete = false;
    uint64_t manifest_bytes = 0;
    std::vector<std::string> missing;  // hashes of the files to send, in the order of the pack
    uint64_t pack_bytes = 0;           // of these files
  };
  Result<Progress> Find(const std::string& digest);

  // Adds the next piece of a manifest, or of the pack of the missing files. After a piece of the
  // pack, the result has the missing files only if the list has changed.
  // - kConflict: `offset` is not the number of bytes that the server has.
  // - kCorrupt: the bytes do not have the digest or a hash of the manifest; the upload was deleted.
  // - kInvalid: the manifest is malformed, or the files are too large.
  // - kStorageFull: the disk is almost full. kUnavailable: too many uploads are unfinished.
  Result<Progress> AddManifest(const std::string& digest, uint64_t offset, std::string_view bytes,
                               bool last);
  Result<Progress> AddPack(const std::string& digest, uint64_t offset, std::string_view bytes);

  // Reads a piece of a part of a complete snapshot: code::kManifestPart, or code::kPackPart with
  // all files of the manifest. kNotFound: there is no such snapshot or part.
  Result<checkpoints::Piece> Read(const std::string& digest, std::string_view part, uint64_t offset,
                                  uint64_t limit);

  // Reads a file of a complete snapshot. `path` begins at the root of the snapshot. kNotFound:
  // there is no such snapshot, or it has no such file. kInvalid: the file has more than `bytes_max`
  // bytes.
  Result<std::string> ReadFile(const std::string& digest, const std::string& path,
                               uint64_t bytes_max);

  // Applies patches to a complete snapshot, one after another, and returns the digest of the
  // result, which is a complete snapshot, too. Later calls of RemoveUnused() keep it like an
  // upload. Runs git in this thread, and does not delay calls in other threads meanwhile.
  // kNotFound: there is no such snapshot. kInvalid: a patch does not apply, or the result is too
  // large. kStorageFull: the disk is almost full. Other errors: see code::ApplyPatch().
  Result<std::string> ApplyPatches(const std::string& digest,
                                   const std::vector<std::string>& patches);

  // Keeps a complete snapshot while the result exists. Call it before a sweep begins to use the
  // snapshot. Null: there is none.
  std::shared_ptr<void> Keep(const std::string& digest);

  // Deletes the snapshots that no sweep uses, files without a snapshot, and uploads that were not
  // continued for a day. A snapshot also stays while a result of Keep() exists, and for an hour
  // after its upload, unless a sweep has used it. `list_used` returns the digests that sweeps use.
  Status RemoveUnused(const std::function<Result<std::set<std::string>>()>& list_used);

 private:
  using Clock = std::chrono::steady_clock;

  // Paths. REQUIRES: the digest is one.
  std::filesystem::path Snapshot(const std::string& digest) const;
  std::filesystem::path Upload(const std::string& digest) const;
  std::filesystem::path FileOf(const std::string& hash) const { return folder_ / "files" / hash; }
  bool HasFile(const code::File& file) const;

  // A snapshot that stays while the object exists.
  struct KeptSnapshot {
    std::shared_ptr<void> kept;
    std::shared_ptr<const code::Manifest> manifest;
  };
  Result<KeptSnapshot> KeepManifest(const std::string& digest);

  // Makes a folder, which the destruction of the result deletes.
  Result<std::shared_ptr<const std::filesystem::path>> MakeScratch();

  // Completes a snapshot. `files` has at least the files that the storage does not have, by hash.
  Result<std::string> AddPatched(const code::Manifest& manifest,
                                 const std::map<std::string, std::filesystem::path>& files);

  // REQUIRES for these: mutex_ is locked.
  bool IsComplete(const std::string& digest);
  Result<Progress> FindLocked(const std::string& digest);
  Status CheckNewUpload(const std::filesystem::path& upload) const;
  Result<Progress> FinishManifest(const std::string& digest);
  Result<Progress> ListMissing(const std::string& digest, const code::Manifest& manifest);
  Result<Progress> Finish(const std::string& digest);
  Result<std::shared_ptr<const code::Manifest>> ManifestOfUpload(const std::string& digest);
  Status StoreFiles(const std::string& digest, const std::vector<const code::File*>& sent);
  // Makes the stored files durable, then adds the snapshot.
  Status AddSnapshot(const std::string& digest, const std::string& manifest_text);
  Status MoveFiles(const code::Manifest& manifest,
                   const std::map<std::string, std::filesystem::path>& files);
  Error DropUpload(const std::string& digest, const Error& error);
  Result<std::set<std::string>> HashesInUse() const;

  Result<std::shared_ptr<const code::Manifest>> ReadManifest(const std::string& digest);

  const std::filesystem::path folder_;
  const uint64_t bytes_max_;

  std::mutex mutex_;
  std::map<std::string, int> kept_;  // calls of Keep(); under mutex_, like the next members
  std::map<std::string, Clock::time_point> uploaded_;  // complete since this process began
  bool removed_unused_ = false;                        // RemoveUnused() has run
  std::set<std::string> complete_;  // snapshots whose files were there when they were last checked
  std::map<std::string, std::shared_ptr<const code::Manifest>> uploading_;
  std::set<std::filesystem::path> patching_;  // folders of MakeScratch()

  std::mutex cache_mutex_;
  // The manifests that were read last, the newest at the end. Under cache_mutex_.
  std::deque<std::pair<std::string, std::shared_ptr<const code::Manifest>>> cache_;
};

}  // namespace attune::server

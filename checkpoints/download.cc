#include "checkpoints/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoints/manifest.h"
#include "checkpoints/worker.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = 1 << 20;  // of what is there already, to hash it
constexpr size_t kMarkDigits = 16;      // of the digest, in the name of the hidden folder

Error Failed(const std::string& what, const fs::path& path, int error) {
  return SystemError("cannot " + what + " " + path.string(), error);
}

fs::path WithoutSlash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

bool Exists(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

class Job {
 public:
  Job(const DownloadSource& source, const fs::path& out,
      const std::function<void(uint64_t, uint64_t)>& progress, uint64_t disk_free_bytes_min)
      : source_(source),
        out_(WithoutSlash(fs::absolute(out).lexically_normal())),
        part_(out_.parent_path() / ("." + out_.filename().string() + ".part-" +
                                    source.digest.substr(kDigestPrefix.size(), kMarkDigits))),
        progress_(progress),
        disk_free_bytes_min_(disk_free_bytes_min) {}

  Downloaded Run() {
    all_.status = Try();
    all_.part = part_;
    return all_;
  }

 private:
  Status Try() {
    if (Status there = CheckOut(); !there.ok()) return there;
    std::error_code failed;
    fs::create_directories(part_, failed);
    if (failed) return Failed("make", part_, failed.value());
    const UniqueFd folder(open(part_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return Failed("open", part_, errno);
    if (Status locked = Lock(folder.get()); !locked.ok()) return locked;
    if (Status lacking = FetchAll(); !lacking.ok()) return lacking;
    return Finish();
  }

  Status CheckOut() const {
    if (!Exists(out_)) return {};
    return Error{ErrorCode::kConflict, out_.string() + " is there already"};
  }

  // As long as the folder is open.
  Status Lock(int folder) const {
    struct stat locked {};
    struct stat there {};
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 || fstat(folder, &locked) != 0 ||
        lstat(part_.c_str(), &there) != 0 || locked.st_ino != there.st_ino)
      return Error{ErrorCode::kUnavailable, "another process downloads it to " + part_.string()};
    return CheckOut();
  }

  Status FetchAll() {
    if (Status lacking = FetchManifest(); !lacking.ok()) return lacking;
    const Result<Manifest> manifest = ReadManifest(manifest_text_, source_.digest);
    if (!manifest.ok()) return Corrupt(kManifestFile, manifest.error().message);
    all_.files = manifest->files.size();
    for (const auto& [name, listed] : manifest->files) all_.bytes += listed.bytes;
    if (Status room = CheckRoom(*manifest); !room.ok()) return room;
    for (const auto& [name, listed] : manifest->files) {
      if (Status fetched = FetchFile(name, listed); !fetched.ok()) return fetched;
      there_ += listed.bytes;
    }
    return {};
  }

  Status FetchManifest() {
    for (;;) {
      const auto piece = source_.read(std::string(kManifestFile), manifest_text_.size(), {});
      if (!piece.ok()) return piece.error();
      manifest_text_ += piece->data;
      if (piece->file_bytes > kManifestBytesMax)
        return Corrupt(kManifestFile, "it is longer than a manifest may be");
      if (manifest_text_.size() >= piece->file_bytes) return {};
      if (piece->data.empty()) return Corrupt(kManifestFile, "it ends too early");
    }
  }

  // Before an hour of it is spent.
  Status CheckRoom(const Manifest& manifest) const {
    uint64_t lacking = 0;
    for (const auto& [name, listed] : manifest.files) {
      std::error_code absent;
      const uint64_t size = fs::file_size(part_ / name, absent);
      lacking += listed.bytes - (absent ? 0 : std::min<uint64_t>(size, listed.bytes));
    }
    std::error_code unknown;
    const fs::space_info space = fs::space(part_, unknown);
    if (unknown || lacking == 0) return {};
    if (space.available >= lacking && space.available - lacking >= disk_free_bytes_min_) return {};
    return Error{
        ErrorCode::kStorageFull,
        source_.name + " needs " + std::to_string(lacking) + " bytes more, and " +
            out_.parent_path().string() + " has " + std::to_string(space.available) +
            (disk_free_bytes_min_ == 0
                 ? ""
                 : ", of which " + std::to_string(disk_free_bytes_min_) + " are to stay free")};
  }

  Status FetchFile(const std::string& name, const Listed& listed) {
    const fs::path path = part_ / name;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    if (failed) return Failed("make", path.parent_path(), failed.value());
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
    if (!file) return Failed("write", path, errno);
    // What is there may be what a machine that died has left of it: then it is fetched anew.
    for (;;) {
      Sha256 sha;
      uint64_t had = 0;
      if (Status unread = HashWhatIsThere(file.get(), path, listed.bytes, sha, had); !unread.ok())
        return unread;
      if (Status lacking = FetchRest(name, listed, had, file.get(), sha); !lacking.ok())
        return lacking;
      if (sha.Hex() == listed.sha256) {
        if (fdatasync(file.get()) != 0) return Failed("sync", path, errno);
        return {};
      }
      if (ftruncate(file.get(), 0) != 0) return Failed("write", path, errno);
      if (had == 0)
        return Corrupt(name, "its SHA-256 is not " + listed.sha256 +
                                 ", which the manifest says: it is damaged where it lies");
    }
  }

  // `had`: how many bytes of it.
  Status HashWhatIsThere(int file, const fs::path& path, uint64_t wanted, Sha256& sha,
                         uint64_t& had) const {
    struct stat status {};
    if (fstat(file, &status) != 0) return Failed("read", path, errno);
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size > wanted) {
      if (ftruncate(file, 0) != 0) return Failed("write", path, errno);
      return {};
    }
    std::string buffer(kReadBytes, '\0');
    while (had < size) {
      const ssize_t count = pread(file, buffer.data(), buffer.size(), static_cast<off_t>(had));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed("read", path, errno);
      if (count == 0) return {};
      sha.Add({buffer.data(), static_cast<size_t>(count)});
      had += static_cast<uint64_t>(count);
    }
    return {};
  }

  // What follows travels while one piece is written and another one hashed.
  Status FetchRest(const std::string& name, const Listed& listed, uint64_t at, int file,
                   Sha256& sha) {
    if (at == listed.bytes) return {};
    Status unwritten;
    Status unread;
    std::array<Piece, Worker::kPieces> pieces;
    {
      std::atomic<bool> full = false;
      Worker hasher([&](const Piece& piece) { sha.Add(piece.data); });
      Worker writer([&, to = at](const Piece& piece) mutable {
        if (full) return;
        if (!WriteAt(file, piece.data, static_cast<off_t>(to)))
          unwritten = Failed("write", part_ / name, errno);
        to += piece.data.size();
        full = !unwritten.ok();
      });
      for (size_t next = 0; !full && at < listed.bytes; next = (next + 1) % pieces.size()) {
        Piece& piece = pieces[next];
        Result<Piece> came = source_.read(name, at, std::move(piece.data));
        unread = came.ok() ? Check(*came, name, listed, at) : Status(came.error());
        if (!unread.ok()) break;
        piece = *std::move(came);
        hasher.Hand(piece);
        writer.Hand(piece);
        at += piece.data.size();
        all_.fetched += piece.data.size();
        if (progress_) progress_(there_ + at, all_.bytes);
      }
    }
    return unwritten.ok() ? unread : unwritten;
  }

  Status Check(const Piece& piece, const std::string& name, const Listed& listed,
               uint64_t at) const {
    if (piece.file_bytes != listed.bytes)
      return Corrupt(name, "it has " + std::to_string(piece.file_bytes) + " bytes and not " +
                               std::to_string(listed.bytes) + ", as the manifest says");
    if (piece.data.empty() || piece.data.size() > listed.bytes - at)
      return Corrupt(name, "what came of it is not what was asked for");
    return {};
  }

  // The manifest comes last, and the name after all that it stands for.
  Status Finish() {
    const fs::path path = part_ / kManifestFile;
    {
      const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
      if (!file || !WriteAt(file.get(), manifest_text_, 0)) return Failed("write", path, errno);
      if (fdatasync(file.get()) != 0) return Failed("sync", path, errno);
    }
    if (Status synced = SyncFolders(); !synced.ok()) return synced;
    if (renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, out_.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) return CheckOut();
      // Not every filesystem knows the flag.
      if (errno != EINVAL || rename(part_.c_str(), out_.c_str()) != 0)
        return Failed("make", out_, errno);
    }
    return SyncFolder(out_.parent_path());
  }

  Status SyncFolders() const {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(part_, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code unknown;
      const bool is_folder = entry->is_directory(unknown);
      if (unknown) return Failed("read", entry->path(), unknown.value());
      if (!is_folder) continue;
      if (Status synced = SyncFolder(entry->path()); !synced.ok()) return synced;
    }
    return failed ? Status(Failed("read", part_, failed.value())) : SyncFolder(part_);
  }

  Error Corrupt(std::string_view file, const std::string& why) const {
    return {ErrorCode::kCorrupt, std::string(file) + " of checkpoint " + source_.name + ": " + why};
  }

  const DownloadSource& source_;
  const fs::path out_;
  const fs::path part_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  const uint64_t disk_free_bytes_min_;
  std::string manifest_text_;
  uint64_t there_ = 0;  // of whole files
  Downloaded all_;
};

}  // namespace

Downloaded Download(const DownloadSource& source, const fs::path& out,
                    const std::function<void(uint64_t, uint64_t)>& progress,
                    uint64_t disk_free_bytes_min) {
  if (!IsDigest(source.digest)) {
    Downloaded none;
    none.status = Error{ErrorCode::kCorrupt,
                        "checkpoint " + source.name + " has the digest \"" + source.digest +
                            "\", which is none: nothing could be checked by it"};
    return none;
  }
  return Job(source, out, progress, disk_free_bytes_min).Run();
}

}  // namespace attune::checkpoints

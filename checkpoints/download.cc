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

constexpr size_t kReadBytes = 1 << 20;  // bytes of an existing file that are hashed at once
constexpr size_t kMarkDigits = 16;      // digits of the digest in the name of the hidden folder

Error FileError(const std::string& what, const fs::path& path, int error) {
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
    result_.status = DownloadAll();
    result_.part = part_;
    return result_;
  }

 private:
  Status DownloadAll() {
    if (Status absent = CheckOutIsAbsent(); !absent.ok()) return absent;
    std::error_code failed;
    fs::create_directories(part_, failed);
    if (failed) return FileError("make", part_, failed.value());
    const UniqueFd folder(open(part_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return FileError("open", part_, errno);
    if (Status locked = Lock(folder.get()); !locked.ok()) return locked;
    if (Status fetched = FetchAll(); !fetched.ok()) return fetched;
    return Finish();
  }

  Status CheckOutIsAbsent() const {
    if (!Exists(out_)) return {};
    return Error{ErrorCode::kConflict, out_.string() + " exists already"};
  }

  // Locks the hidden folder until its descriptor is closed.
  Status Lock(int folder) const {
    struct stat locked {};
    struct stat current {};
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 || fstat(folder, &locked) != 0 ||
        lstat(part_.c_str(), &current) != 0 || locked.st_ino != current.st_ino)
      return Error{ErrorCode::kUnavailable,
                   "another process is downloading this checkpoint to " + part_.string()};
    return CheckOutIsAbsent();
  }

  Status FetchAll() {
    Result<std::string> text = FetchText(source_, std::string(kManifestFile), kManifestBytesMax);
    if (!text.ok()) return text.error();
    manifest_text_ = *std::move(text);
    const Result<Manifest> manifest = ReadManifest(manifest_text_, source_.digest);
    if (!manifest.ok()) return Corrupt(kManifestFile, manifest.error().message);
    result_.files = manifest->files.size();
    for (const auto& [name, entry] : manifest->files) result_.bytes += entry.bytes;
    if (Status space = CheckSpace(*manifest); !space.ok()) return space;
    for (const auto& [name, entry] : manifest->files) {
      if (Status fetched = FetchFile(name, entry); !fetched.ok()) return fetched;
      finished_bytes_ += entry.bytes;
    }
    return {};
  }

  // Checks the free disk space before the download, which may take an hour.
  Status CheckSpace(const Manifest& manifest) const {
    uint64_t missing = 0;
    for (const auto& [name, entry] : manifest.files) {
      std::error_code absent;
      const uint64_t size = fs::file_size(part_ / name, absent);
      missing += entry.bytes - (absent ? 0 : std::min<uint64_t>(size, entry.bytes));
    }
    std::error_code unknown;
    const fs::space_info space = fs::space(part_, unknown);
    if (unknown || missing == 0) return {};
    if (space.available >= missing && space.available - missing >= disk_free_bytes_min_) return {};
    return Error{ErrorCode::kStorageFull,
                 source_.name + " needs " + std::to_string(missing) + " more bytes, but " +
                     out_.parent_path().string() + " has " + std::to_string(space.available) +
                     " free" +
                     (disk_free_bytes_min_ == 0
                          ? ""
                          : " and must keep " + std::to_string(disk_free_bytes_min_) + " free")};
  }

  Status FetchFile(const std::string& name, const FileEntry& entry) {
    const fs::path path = part_ / name;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    if (failed) return FileError("make", path.parent_path(), failed.value());
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
    if (!file) return FileError("write", path, errno);
    // A crash of the machine may have damaged the existing part. Then the file is downloaded again.
    for (;;) {
      Sha256 sha;
      uint64_t existing = 0;
      if (Status hashed = HashExisting(file.get(), path, entry.bytes, sha, existing); !hashed.ok())
        return hashed;
      if (Status fetched = FetchRest(name, entry, existing, file.get(), sha); !fetched.ok())
        return fetched;
      const std::string hash = sha.Hex();
      if (hash == entry.sha256) {
        if (fdatasync(file.get()) != 0) return FileError("sync", path, errno);
        return {};
      }
      if (ftruncate(file.get(), 0) != 0) return FileError("write", path, errno);
      if (existing == 0)
        return Corrupt(name, "its SHA-256 is " + hash + ", but the manifest says " + entry.sha256 +
                                 ": the source is damaged");
    }
  }

  // Hashes the part of the file that exists. `existing`: its length in bytes.
  Status HashExisting(int file, const fs::path& path, uint64_t wanted, Sha256& sha,
                      uint64_t& existing) const {
    struct stat status {};
    if (fstat(file, &status) != 0) return FileError("read", path, errno);
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size > wanted) {
      if (ftruncate(file, 0) != 0) return FileError("write", path, errno);
      return {};
    }
    std::string buffer(kReadBytes, '\0');
    while (existing < size) {
      const ssize_t count = pread(file, buffer.data(), buffer.size(), static_cast<off_t>(existing));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return FileError("read", path, errno);
      if (count == 0) return {};
      sha.Add({buffer.data(), static_cast<size_t>(count)});
      existing += static_cast<uint64_t>(count);
    }
    return {};
  }

  // Receives the next piece while one piece is written and another is hashed.
  Status FetchRest(const std::string& name, const FileEntry& entry, uint64_t at, int file,
                   Sha256& sha) {
    if (at == entry.bytes) return {};
    Status written;
    Status received;
    std::array<Piece, Worker::kPieces> pieces;
    {
      std::atomic<bool> full = false;
      Worker hasher([&](const Piece& piece) { sha.Add(piece.data); });
      Worker writer([&, to = at](const Piece& piece) mutable {
        if (full) return;
        if (!WriteAt(file, piece.data, static_cast<off_t>(to)))
          written = FileError("write", part_ / name, errno);
        to += piece.data.size();
        full = !written.ok();
      });
      for (size_t next = 0; !full && at < entry.bytes; next = (next + 1) % pieces.size()) {
        Piece& piece = pieces[next];
        Result<Piece> read = source_.read(name, at, std::move(piece.data));
        received = read.ok() ? Check(*read, name, entry, at) : Status(read.error());
        if (!received.ok()) break;
        piece = *std::move(read);
        hasher.Add(piece);
        writer.Add(piece);
        at += piece.data.size();
        result_.fetched += piece.data.size();
        if (progress_) progress_(finished_bytes_ + at, result_.bytes);
      }
    }
    return written.ok() ? received : written;
  }

  Status Check(const Piece& piece, const std::string& name, const FileEntry& entry,
               uint64_t at) const {
    if (piece.file_bytes != entry.bytes)
      return Corrupt(name, "it has " + std::to_string(piece.file_bytes) +
                               " bytes, but the manifest says " + std::to_string(entry.bytes));
    if (piece.data.empty() || piece.data.size() > entry.bytes - at)
      return Corrupt(name, "the source sent no bytes, or more than requested");
    return {};
  }

  // Writes the manifest last, and renames the folder when everything is on disk.
  Status Finish() {
    const fs::path path = part_ / kManifestFile;
    {
      const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
      if (!file || !WriteAt(file.get(), manifest_text_, 0)) return FileError("write", path, errno);
      if (fdatasync(file.get()) != 0) return FileError("sync", path, errno);
    }
    if (Status synced = SyncFolders(); !synced.ok()) return synced;
    if (renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, out_.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) return CheckOutIsAbsent();
      // Not every file system supports RENAME_NOREPLACE.
      if (errno != EINVAL || rename(part_.c_str(), out_.c_str()) != 0)
        return FileError("make", out_, errno);
    }
    return SyncFolder(out_.parent_path());
  }

  Status SyncFolders() const {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(part_, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code unknown;
      const bool is_folder = entry->is_directory(unknown);
      if (unknown) return FileError("read", entry->path(), unknown.value());
      if (!is_folder) continue;
      if (Status synced = SyncFolder(entry->path()); !synced.ok()) return synced;
    }
    return failed ? Status(FileError("read", part_, failed.value())) : SyncFolder(part_);
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
  uint64_t finished_bytes_ = 0;  // of complete files
  Downloaded result_;
};

}  // namespace

Result<std::string> FetchText(const DownloadSource& source, const std::string& file,
                              uint64_t bytes_max) {
  const auto corrupt = [&](const std::string& why) {
    return Error{ErrorCode::kCorrupt, file + " of " + source.name + ": " + why};
  };
  std::string text;
  for (;;) {
    const Result<Piece> piece = source.read(file, text.size(), {});
    if (!piece.ok()) return piece.error();
    text += piece->data;
    if (piece->file_bytes > bytes_max)
      return corrupt("it is longer than " + std::to_string(bytes_max) + " bytes");
    if (text.size() >= piece->file_bytes) return text;
    if (piece->data.empty()) return corrupt("it ends too early");
  }
}

Downloaded Download(const DownloadSource& source, const fs::path& out,
                    const std::function<void(uint64_t, uint64_t)>& progress,
                    uint64_t disk_free_bytes_min) {
  if (!IsDigest(source.digest)) {
    Downloaded none;
    none.status =
        Error{ErrorCode::kCorrupt, "checkpoint " + source.name + " has an invalid digest \"" +
                                       source.digest + "\"; its files cannot be verified"};
    return none;
  }
  return Job(source, out, progress, disk_free_bytes_min).Run();
}

}  // namespace attune::checkpoints

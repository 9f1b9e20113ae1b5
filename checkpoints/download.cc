#include "checkpoints/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoints/manifest.h"
#include "checkpoints/worker.h"
#include "system/sha256.h"
#include "system/unique_fd.h"

namespace attune::checkpoints {
namespace {

namespace fs = std::filesystem;
using Fault = Downloaded::Fault;

constexpr size_t kReadBytes = 1 << 20;  // of what is there already, to hash it
constexpr size_t kMarkDigits = 16;      // of the digest, in the name of the hidden folder

struct Problem {
  Fault fault = Fault::kNone;
  std::string text;

  bool ok() const { return fault == Fault::kNone; }
};

Problem Failed(const std::string& what, const fs::path& path, int error) {
  return {error == ENOSPC || error == EDQUOT ? Fault::kFull
          : error == EACCES                  ? Fault::kDenied
                                             : Fault::kOther,
          "cannot " + what + " " + path.string() + ": " + std::strerror(error)};
}

Problem Sync(const fs::path& folder) {
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || fsync(opened.get()) != 0) return Failed("sync", folder, errno);
  return {};
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
    Problem problem = Try();
    all_.part = part_;
    all_.fault = problem.fault;
    all_.error = std::move(problem.text);
    return all_;
  }

 private:
  Problem Try() {
    if (Problem there = CheckOut(); !there.ok()) return there;
    std::error_code failed;
    fs::create_directories(part_, failed);
    if (failed) return Failed("make", part_, failed.value());
    const UniqueFd folder(open(part_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return Failed("open", part_, errno);
    if (Problem locked = Lock(folder.get()); !locked.ok()) return locked;
    if (Problem lacking = FetchAll(); !lacking.ok()) return lacking;
    return Finish();
  }

  Problem CheckOut() const {
    if (!Exists(out_)) return {};
    return {Fault::kThere, out_.string() + " is there already"};
  }

  // As long as the folder is open.
  Problem Lock(int folder) const {
    struct stat locked {};
    struct stat there {};
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 || fstat(folder, &locked) != 0 ||
        lstat(part_.c_str(), &there) != 0 || locked.st_ino != there.st_ino)
      return {Fault::kBusy, "somebody else is at it, in " + part_.string()};
    return CheckOut();
  }

  Problem FetchAll() {
    if (Problem lacking = FetchManifest(); !lacking.ok()) return lacking;
    Manifest manifest = ReadManifest(manifest_text_, source_.digest);
    if (!manifest.error.empty()) return Corrupt(kManifestFile, manifest.error);
    all_.files = manifest.files.size();
    for (const auto& [name, listed] : manifest.files) all_.bytes += listed.bytes;
    if (Problem room = CheckRoom(manifest); !room.ok()) return room;
    for (const auto& [name, listed] : manifest.files) {
      if (Problem fetched = FetchFile(name, listed); !fetched.ok()) return fetched;
      there_ += listed.bytes;
    }
    return {};
  }

  Problem FetchManifest() {
    for (;;) {
      const Piece piece = source_.read(std::string(kManifestFile), manifest_text_.size(), {});
      if (!piece.error.empty()) return {Fault::kSource, piece.error};
      manifest_text_ += piece.data;
      if (piece.file_bytes > kManifestBytesMax)
        return Corrupt(kManifestFile, "it is longer than a manifest may be");
      if (manifest_text_.size() >= piece.file_bytes) return {};
      if (piece.data.empty()) return Corrupt(kManifestFile, "it ends too early");
    }
  }

  // Before an hour of it is spent.
  Problem CheckRoom(const Manifest& manifest) const {
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
    return {Fault::kFull,
            source_.name + " needs " + std::to_string(lacking) + " bytes more, and " +
                out_.parent_path().string() + " has " + std::to_string(space.available) +
                (disk_free_bytes_min_ == 0
                     ? ""
                     : ", of which " + std::to_string(disk_free_bytes_min_) + " are to stay free")};
  }

  Problem FetchFile(const std::string& name, const Listed& listed) {
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
      if (Problem unread = HashWhatIsThere(file.get(), path, listed.bytes, sha, had); !unread.ok())
        return unread;
      if (Problem lacking = FetchRest(name, listed, had, file.get(), sha); !lacking.ok())
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
  Problem HashWhatIsThere(int file, const fs::path& path, uint64_t wanted, Sha256& sha,
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
  Problem FetchRest(const std::string& name, const Listed& listed, uint64_t at, int file,
                    Sha256& sha) {
    if (at == listed.bytes) return {};
    Problem unwritten;
    Problem unread;
    std::array<Piece, Worker::kPieces> pieces;
    {
      std::atomic<bool> full = false;
      Worker hasher([&](const Piece& piece) { sha.Add(piece.data); });
      Worker writer([&, to = at](const Piece& piece) mutable {
        if (full) return;
        unwritten = Write(file, part_ / name, piece.data, to);
        to += piece.data.size();
        full = !unwritten.ok();
      });
      for (size_t next = 0; !full && at < listed.bytes; next = (next + 1) % pieces.size()) {
        Piece& piece = pieces[next];
        piece = source_.read(name, at, std::move(piece.data));
        unread = Check(piece, name, listed, at);
        if (!unread.ok()) break;
        hasher.Hand(piece);
        writer.Hand(piece);
        at += piece.data.size();
        all_.fetched += piece.data.size();
        if (progress_) progress_(there_ + at, all_.bytes);
      }
    }
    return unwritten.ok() ? unread : unwritten;
  }

  Problem Check(const Piece& piece, const std::string& name, const Listed& listed,
                uint64_t at) const {
    if (!piece.error.empty()) return {Fault::kSource, piece.error};
    if (piece.file_bytes != listed.bytes)
      return Corrupt(name, "it has " + std::to_string(piece.file_bytes) + " bytes and not " +
                               std::to_string(listed.bytes) + ", as the manifest says");
    if (piece.data.empty() || piece.data.size() > listed.bytes - at)
      return Corrupt(name, "what came of it is not what was asked for");
    return {};
  }

  static Problem Write(int file, const fs::path& path, std::string_view data, uint64_t at) {
    while (!data.empty()) {
      const ssize_t count = pwrite(file, data.data(), data.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed("write", path, errno);
      data.remove_prefix(static_cast<size_t>(count));
      at += static_cast<uint64_t>(count);
    }
    return {};
  }

  // The manifest comes last, and the name after all that it stands for.
  Problem Finish() {
    const fs::path path = part_ / kManifestFile;
    {
      const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                               S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
      if (!file) return Failed("write", path, errno);
      if (Problem written = Write(file.get(), path, manifest_text_, 0); !written.ok())
        return written;
      if (fdatasync(file.get()) != 0) return Failed("sync", path, errno);
    }
    if (Problem synced = SyncFolders(); !synced.ok()) return synced;
    if (renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, out_.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) return CheckOut();
      // Not every filesystem knows the flag.
      if (errno != EINVAL || rename(part_.c_str(), out_.c_str()) != 0)
        return Failed("make", out_, errno);
    }
    return Sync(out_.parent_path());
  }

  Problem SyncFolders() const {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(part_, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code unknown;
      const bool is_folder = entry->is_directory(unknown);
      if (unknown) return Failed("read", entry->path(), unknown.value());
      if (!is_folder) continue;
      if (Problem synced = Sync(entry->path()); !synced.ok()) return synced;
    }
    return failed ? Failed("read", part_, failed.value()) : Sync(part_);
  }

  Problem Corrupt(std::string_view file, const std::string& why) const {
    return {Fault::kCorrupt, std::string(file) + " of checkpoint " + source_.name + ": " + why};
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
    none.fault = Fault::kCorrupt;
    none.error = "checkpoint " + source.name + " has the digest \"" + source.digest +
                 "\", which is none: nothing could be checked by it";
    return none;
  }
  return Job(source, out, progress, disk_free_bytes_min).Run();
}

}  // namespace attune::checkpoints

#include "code/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lines.h"
#include "checkpoints/removal.h"
#include "code/pack.h"
#include "system/file_copies.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;
using checkpoints::Downloaded;
using checkpoints::DownloadSource;
using checkpoints::Piece;

constexpr mode_t kReadOnly = 0444;
constexpr mode_t kReadOnlyProgram = 0555;  // also of folders
constexpr mode_t kWritable = 0644;
constexpr mode_t kWritableProgram = 0755;  // also of folders

Error FileError(const std::string& what, const fs::path& path, int error) {
  return SystemError("cannot " + what + " " + path.string(), error);
}

fs::path ManifestPath(const fs::path& copy) { return copy / "manifest"; }
fs::path StampsPath(const fs::path& copy) { return copy / "stamps"; }

// The folders of the entries, each before the folders inside it.
std::set<std::string> FoldersOf(const Manifest& manifest) {
  std::set<std::string> folders;
  const auto add = [&](const std::string& path) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      folders.insert(path.substr(0, slash));
  };
  for (const File& file : manifest.files) add(file.path);
  for (const Link& link : manifest.links) add(link.path);
  return folders;
}

Status MakeFolders(const Manifest& manifest, const fs::path& root) {
  std::error_code failed;
  fs::create_directories(root, failed);
  if (failed) return FileError("make", root, failed.value());
  for (const std::string& folder : FoldersOf(manifest)) {
    if (mkdir((root / folder).c_str(), kWritableProgram) != 0 && errno != EEXIST)
      return FileError("make", root / folder, errno);
  }
  return {};
}

Status MakeLinks(const Manifest& manifest, const fs::path& root) {
  for (const Link& link : manifest.links) {
    const fs::path path = root / link.path;
    unlink(path.c_str());
    if (symlink(link.target.c_str(), path.c_str()) != 0) return FileError("make", path, errno);
  }
  return {};
}

Status Protect(const Manifest& manifest, const fs::path& root) {
  for (const File& file : manifest.files) {
    const fs::path path = root / file.path;
    if (chmod(path.c_str(), file.executable ? kReadOnlyProgram : kReadOnly) != 0)
      return FileError("protect", path, errno);
  }
  for (const std::string& folder : FoldersOf(manifest)) {
    if (chmod((root / folder).c_str(), kReadOnlyProgram) != 0)
      return FileError("protect", root / folder, errno);
  }
  if (chmod(root.c_str(), kReadOnlyProgram) != 0) return FileError("protect", root, errno);
  return {};
}

Status CheckHash(const File& file, const fs::path& path) {
  const Result<std::string> hash = Sha256::HexOfFile(path);
  if (!hash.ok()) return hash.error();
  if (*hash == file.sha256) return {};
  return Error{ErrorCode::kCorrupt, path.string() + " does not have its SHA-256"};
}

// ---- stamps -------------------------------------------------------------------------------------

// The stamps of all files in the order of the manifest, one a line.
Result<std::string> StampsText(const Manifest& manifest, const fs::path& root) {
  std::string text;
  for (const File& file : manifest.files) {
    const Result<std::string> stamp = FileStamp(root / file.path);
    if (!stamp.ok()) return stamp.error();
    text += *stamp + '\n';
  }
  return text;
}

Status WriteStamps(const Manifest& manifest, const fs::path& copy) {
  const Result<std::string> text = StampsText(manifest, TreeOf(copy));
  return text.ok() ? WriteWhole(StampsPath(copy), *text, kPrivate) : text.error();
}

// ---- download -----------------------------------------------------------------------------------

class CopyDownload {
 public:
  CopyDownload(const DownloadSource& source, const fs::path& out, uint64_t disk_free_bytes_min)
      : source_(source),
        out_(out),
        part_(out.parent_path() / ("." + out.filename().string() + ".part")),
        disk_free_bytes_min_(disk_free_bytes_min) {}

  Downloaded Run() {
    result_.part = part_;
    result_.status = Fetch();
    // The next try cannot know which bytes are wrong.
    if (!result_.status.ok() && result_.status.error().code == ErrorCode::kCorrupt)
      RemoveCopy(part_);
    return result_;
  }

 private:
  Status Fetch() {
    if (Status fetched = FetchManifest(); !fetched.ok()) return fetched;
    const fs::path tree = TreeOf(part_);
    MakeFoldersWritable(tree);
    if (Status made = MakeFolders(manifest_, tree); !made.ok()) return made;
    if (Status fetched = FetchPack(); !fetched.ok()) return fetched;
    for (const File& file : manifest_.files) {
      if (Status checked = CheckHash(file, tree / file.path); !checked.ok()) return checked;
    }
    if (Status made = MakeLinks(manifest_, tree); !made.ok()) return made;
    if (Status made = Protect(manifest_, tree); !made.ok()) return made;
    if (Status written = WriteWhole(ManifestPath(part_), manifest_text_, kPrivate); !written.ok())
      return written;
    if (Status written = WriteStamps(manifest_, part_); !written.ok()) return written;
    return Replace();
  }

  // Trials may run from an earlier copy, so its path must lead to files at all times.
  Status Replace() const {
    if (Status swapped = SwapFolderIn(part_, out_); !swapped.ok()) return swapped;
    RemoveCopy(part_);
    return {};
  }

  Status FetchManifest() {
    Result<std::string> text =
        checkpoints::FetchText(source_, std::string(kManifestPart), kManifestBytesMax);
    if (!text.ok()) return text.error();
    manifest_text_ = *std::move(text);
    if (DigestOf(manifest_text_) != source_.digest) return Corrupt("its manifest is damaged");
    Result<Manifest> manifest = ParseManifest(manifest_text_);
    if (!manifest.ok()) return Corrupt(manifest.error().message);
    manifest_ = *std::move(manifest);
    result_.files = manifest_.files.size();
    result_.bytes = manifest_.bytes();
    return {};
  }

  // The byte of the pack at which the download continues. Later files are written again.
  uint64_t ResumeOffset() const {
    uint64_t offset = 0;
    for (const File& file : manifest_.files) {
      struct stat status {};
      if (lstat((TreeOf(part_) / file.path).c_str(), &status) != 0) return offset;
      const auto size = static_cast<uint64_t>(status.st_size);
      if (size != file.bytes) return offset + (size < file.bytes ? size : 0);
      offset += size;
    }
    return offset;
  }

  Status FetchPack() {
    if (Status made = MakeEmptyFiles(); !made.ok()) return made;
    uint64_t at = ResumeOffset();
    if (Status space = CheckSpace(result_.bytes - at); !space.ok()) return space;
    std::string memory;
    while (at < result_.bytes) {
      Result<Piece> piece = source_.read(std::string(kPackPart), at, std::move(memory));
      if (!piece.ok()) return piece.error();
      if (piece->file_bytes != result_.bytes || piece->data.empty() ||
          piece->data.size() > result_.bytes - at)
        return Corrupt("the source sent another number of bytes than the manifest says");
      if (Status written = Write(at, piece->data); !written.ok()) return written;
      at += piece->data.size();
      result_.fetched += piece->data.size();
      memory = std::move(piece->data);
    }
    return {};
  }

  // No piece of the pack mentions empty files.
  Status MakeEmptyFiles() const {
    for (const File& file : manifest_.files) {
      if (file.bytes > 0) continue;
      const fs::path path = TreeOf(part_) / file.path;
      unlink(path.c_str());  // an interrupted download may have protected it
      const UniqueFd made(
          open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kWritable));
      if (!made) return FileError("write", path, errno);
    }
    return {};
  }

  Status Write(uint64_t offset, std::string_view bytes) const {
    for (const PackPart& part : PartsOfPack(manifest_.files, offset, bytes.size())) {
      const fs::path path = TreeOf(part_) / part.file->path;
      const UniqueFd file(
          open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kWritable));
      if (!file || ftruncate(file.get(), static_cast<off_t>(part.offset)) != 0 ||
          !WriteAt(file.get(), bytes.substr(0, part.bytes), static_cast<off_t>(part.offset)))
        return FileError("write", path, errno);
      bytes.remove_prefix(part.bytes);
    }
    return {};
  }

  Status CheckSpace(uint64_t missing) const {
    std::error_code unknown;
    const fs::space_info space = fs::space(part_, unknown);
    if (unknown || missing == 0) return {};
    if (space.available >= missing && space.available - missing >= disk_free_bytes_min_) return {};
    return Error{ErrorCode::kStorageFull,
                 source_.name + " needs " + std::to_string(missing) + " more bytes, but " +
                     out_.parent_path().string() + " has " + std::to_string(space.available) +
                     " free, and " + std::to_string(disk_free_bytes_min_) + " must stay free"};
  }

  Error Corrupt(const std::string& why) const {
    return {ErrorCode::kCorrupt, source_.name + ": " + why};
  }

  const DownloadSource& source_;
  const fs::path out_;
  const fs::path part_;
  const uint64_t disk_free_bytes_min_;
  std::string manifest_text_;
  Manifest manifest_;
  Downloaded result_;
};

// ---- checks -------------------------------------------------------------------------------------

// Visits all entries of a tree and compares them with the manifest.
class TreeComparison {
 public:
  TreeComparison(const Manifest& manifest, fs::path root) : root_(std::move(root)) {
    for (const File& file : manifest.files) expected_[file.path] = fs::file_type::regular;
    for (const Link& link : manifest.links) expected_[link.path] = fs::file_type::symlink;
    for (const std::string& folder : FoldersOf(manifest))
      expected_[folder] = fs::file_type::directory;
  }

  Status Run() {
    std::error_code failed;
    size_t found = 0;
    for (auto entry = fs::recursive_directory_iterator(root_, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      std::error_code unknown;
      const fs::file_type type = entry->symlink_status(unknown).type();
      if (type == fs::file_type::directory && entry->path().filename() == kPythonCacheName) {
        entry.disable_recursion_pending();
        continue;
      }
      const std::string path = entry->path().lexically_relative(root_).string();
      const auto expected = expected_.find(path);
      if (expected == expected_.end() || expected->second != type)
        return Error{ErrorCode::kCorrupt, entry->path().string() + " was added or replaced"};
      ++found;
    }
    if (failed) return FileError("read", root_, failed.value());
    if (found == expected_.size()) return {};
    for (const auto& [path, type] : expected_) {
      struct stat status {};
      if (lstat((root_ / path).c_str(), &status) != 0)
        return Error{ErrorCode::kCorrupt, (root_ / path).string() + " is missing"};
    }
    return {};
  }

 private:
  const fs::path root_;
  std::map<std::string, fs::file_type> expected_;
};

Status CheckLinks(const Manifest& manifest, const fs::path& root) {
  for (const Link& link : manifest.links) {
    std::error_code failed;
    if (fs::read_symlink(root / link.path, failed) != fs::path(link.target))
      return Error{ErrorCode::kCorrupt, (root / link.path).string() + " leads elsewhere"};
  }
  return {};
}

// ---- folders of trials
// ---------------------------------------------------------------------------

Status LinkEntry(const fs::path& entry, const fs::path& link) {
  std::error_code absent;
  const fs::file_type type = fs::symlink_status(link, absent).type();
  if (type == fs::file_type::symlink && fs::read_symlink(link, absent) == entry) return {};
  if (type != fs::file_type::symlink && type != fs::file_type::not_found)
    return {};  // the program has written its own file
  // Another host may run ranks of the trial in the same folder, so the name must always exist.
  const fs::path draft = link.parent_path() / (".attune-" + link.filename().string());
  unlink(draft.c_str());
  if (symlink(entry.c_str(), draft.c_str()) != 0 || rename(draft.c_str(), link.c_str()) != 0)
    return FileError("make", link, errno);
  return {};
}

// The names of the entries in a folder of the snapshot; "" is its root.
std::set<std::string> NamesIn(const Manifest& manifest, const std::string& folder) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  std::set<std::string> names;
  const auto add = [&](const std::string& path) {
    if (!path.starts_with(prefix)) return;
    const std::string rest = path.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  };
  for (const File& file : manifest.files) add(file.path);
  for (const Link& link : manifest.links) add(link.path);
  return names;
}

// Makes a folder of the program in place of a link to the snapshot's folder.
Status MakeOwnFolder(const fs::path& folder) {
  std::error_code failed;
  if (fs::is_symlink(fs::symlink_status(folder, failed))) unlink(folder.c_str());
  if (mkdir(folder.c_str(), kWritableProgram) != 0 && errno != EEXIST)
    return FileError("make", folder, errno);
  return {};
}

Status CopyTree(const Manifest& manifest, const fs::path& from, const fs::path& to) {
  if (Status made = MakeFolders(manifest, to); !made.ok()) return made;
  for (const File& file : manifest.files) {
    const fs::path path = to / file.path;
    std::error_code failed;
    fs::copy_file(from / file.path, path, fs::copy_options::overwrite_existing, failed);
    if (failed) return FileError("write", path, failed.value());
    if (chmod(path.c_str(), file.executable ? kWritableProgram : kWritable) != 0)
      return FileError("write", path, errno);
  }
  return MakeLinks(manifest, to);
}

}  // namespace

fs::path TreeOf(const fs::path& copy) { return copy / "tree"; }

Result<Manifest> ReadCopiedManifest(const fs::path& copy) {
  const Result<std::string> text = ReadWhole(ManifestPath(copy));
  if (!text.ok()) return text.error();
  Result<Manifest> manifest = ParseManifest(*text);
  if (manifest.ok()) return manifest;
  return Error{ErrorCode::kCorrupt, ManifestPath(copy).string() + " is missing or damaged"};
}

Downloaded DownloadCopy(const DownloadSource& source, const fs::path& out,
                        uint64_t disk_free_bytes_min) {
  return CopyDownload(source, out, disk_free_bytes_min).Run();
}

Status VerifyCopy(const fs::path& copy, const std::string& digest) {
  const Result<std::string> text = ReadWhole(ManifestPath(copy));
  if (!text.ok()) return text.error();
  if (DigestOf(*text) != digest)
    return Error{ErrorCode::kCorrupt, ManifestPath(copy).string() + " is missing or damaged"};
  const Result<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return manifest.error();
  const fs::path tree = TreeOf(copy);
  if (Status same = TreeComparison(*manifest, tree).Run(); !same.ok()) return same;
  if (Status same = CheckLinks(*manifest, tree); !same.ok()) return same;

  const Result<std::string> known = ReadWhole(StampsPath(copy));
  if (!known.ok()) return known.error();
  const Result<std::string> current = StampsText(*manifest, tree);
  if (!current.ok()) return current.error();
  if (*known == *current) return {};
  const std::vector<std::string_view> before = SplitLines(*known);
  const std::vector<std::string_view> now = SplitLines(*current);
  for (size_t i = 0; i < manifest->files.size(); ++i) {
    if (i < before.size() && before[i] == now[i]) continue;
    const File& file = manifest->files[i];
    if (Status same = CheckHash(file, tree / file.path); !same.ok()) return same;
  }
  if (Status made = Protect(*manifest, tree); !made.ok()) return made;
  return WriteStamps(*manifest, copy);
}

void MakeFoldersWritable(const fs::path& root) {
  std::vector<fs::path> folders{root};
  while (!folders.empty()) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    std::error_code failed;
    if (!fs::is_directory(fs::symlink_status(folder, failed))) continue;
    chmod(folder.c_str(), kWritableProgram);
    for (auto entry = fs::directory_iterator(folder, failed);
         !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      folders.push_back(entry->path());
    }
  }
}

std::error_code RemoveCopy(const fs::path& copy) {
  MakeFoldersWritable(TreeOf(copy));
  MakeFoldersWritable(TreeOf(checkpoints::PathOfRemoved(copy)));
  return checkpoints::RemoveFolder(copy);
}

Status MakeWorkFolder(const fs::path& copy, const fs::path& work, const fs::path& directory,
                      bool writable) {
  const Result<Manifest> manifest = ReadCopiedManifest(copy);
  if (!manifest.ok()) return manifest.error();
  std::error_code failed;
  if (writable) {
    if (fs::exists(work, failed)) return {};
    const fs::path draft = work.parent_path() / ("." + work.filename().string() + ".part");
    fs::remove_all(draft, failed);
    if (Status copied = CopyTree(*manifest, TreeOf(copy), draft); !copied.ok()) return copied;
    fs::rename(draft, work, failed);
    return failed ? Status(FileError("make", work, failed.value())) : Status();
  }
  fs::create_directories(work, failed);
  if (failed) return FileError("make", work, failed.value());
  const std::set<std::string> folders = FoldersOf(*manifest);
  auto next = directory.begin();
  for (std::string folder;;) {
    const std::string own = next == directory.end() ? "" : next->string();
    const std::string inner = folder.empty() ? own : folder + "/" + own;
    for (const std::string& name : NamesIn(*manifest, folder)) {
      const fs::path entry = fs::path(folder) / name;
      Status made = name == own && folders.contains(inner)
                        ? MakeOwnFolder(work / entry)
                        : LinkEntry(TreeOf(copy) / entry, work / entry);
      if (!made.ok()) return made;
    }
    if (own.empty() || !folders.contains(inner)) return {};
    folder = inner;
    ++next;
  }
}

}  // namespace attune::code

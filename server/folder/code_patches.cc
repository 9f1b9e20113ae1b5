#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "code/patch.h"
#include "server/folder/code_files.h"
#include "server/folder/code_storage.h"
#include "system/files.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

Error WithPosition(const Error& error, size_t index, size_t count) {
  if (count == 1 || error.code != ErrorCode::kInvalid) return error;
  return Invalid("patch " + std::to_string(index + 1) + " of " + std::to_string(count) + ": " +
                 error.message);
}

}  // namespace

Result<std::string> CodeStorage::ReadFile(const std::string& digest, const std::string& path,
                                          uint64_t bytes_max) {
  const Result<KeptSnapshot> snapshot = KeepManifest(digest);
  if (!snapshot.ok()) return snapshot.error();
  const std::vector<code::File>& files = snapshot->manifest->files;
  const auto file = std::ranges::lower_bound(files, path, {}, &code::File::path);
  if (file == files.end() || file->path != path)
    return Error{ErrorCode::kNotFound, "the code has no file '" + path +
                                           "'; name a file, not a link, by its path from the "
                                           "folder of the code"};
  if (file->bytes > bytes_max)
    return Invalid("the file '" + path + "' of the code has " + std::to_string(file->bytes) +
                   " bytes, more than " + std::to_string(bytes_max));
  if (file->bytes == 0) return std::string();
  Result<std::string> text = ReadWhole(FileOf(file->sha256));
  if (text.ok() && text->size() != file->bytes)
    return Error{ErrorCode::kCorrupt, FileOf(file->sha256).string() + " is missing or damaged"};
  return text;
}

Result<std::string> CodeStorage::ApplyPatches(const std::string& digest,
                                              const std::vector<std::string>& patches) {
  const Result<KeptSnapshot> snapshot = KeepManifest(digest);
  if (!snapshot.ok()) return snapshot.error();
  if (Status space = CheckFreeSpace(folder_); !space.ok()) return space.error();
  const auto scratch = MakeScratch();
  if (!scratch.ok()) return scratch.error();

  code::Patched patched{.manifest = *snapshot->manifest};
  const auto stored = [&](const std::string& hash) {
    const auto made = patched.files.find(hash);
    return made == patched.files.end() ? FileOf(hash) : made->second;
  };
  for (size_t i = 0; i < patches.size(); ++i) {
    const fs::path folder = **scratch / std::to_string(i);
    if (Status made = MakeFolder(folder); !made.ok()) return made.error();
    Result<code::Patched> next =
        code::ApplyPatch(patches[i], patched.manifest, stored, folder, bytes_max_);
    if (!next.ok()) return WithPosition(next.error(), i, patches.size());
    patched.manifest = std::move(next->manifest);
    patched.files.merge(next->files);
  }
  return AddPatched(patched.manifest, patched.files);
}

Result<std::shared_ptr<const fs::path>> CodeStorage::MakeScratch() {
  if (Status made = MakeFolder(folder_ / "patches"); !made.ok()) return made.error();
  const std::lock_guard lock(mutex_);
  std::string name = folder_ / "patches/XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return FileError("make", name, errno);
  patching_.insert(name);
  return std::shared_ptr<const fs::path>(new fs::path(name), [this](const fs::path* made) {
    const std::unique_ptr<const fs::path> path(made);
    RemoveAll(*path);
    const std::lock_guard release(mutex_);
    patching_.erase(*path);
  });
}

Result<std::string> CodeStorage::AddPatched(const code::Manifest& manifest,
                                            const std::map<std::string, fs::path>& files) {
  const std::string text = code::ToText(manifest);
  const std::string digest = code::DigestOf(text);
  const std::lock_guard lock(mutex_);
  if (IsComplete(digest)) {
    uploaded_[digest] = Clock::now();
    return digest;
  }
  Status added = MoveFiles(manifest, files);
  if (added.ok()) added = AddSnapshot(digest, text);
  if (added.ok()) return digest;
  removed_unused_ = false;  // the files have no snapshot
  return added.error();
}

Status CodeStorage::MoveFiles(const code::Manifest& manifest,
                              const std::map<std::string, fs::path>& files) {
  if (Status made = MakeFolder(folder_ / "files"); !made.ok()) return made;
  for (const code::File& file : manifest.files) {
    if (HasFile(file)) continue;
    const auto made = files.find(file.sha256);
    if (made == files.end())
      return Error{ErrorCode::kCorrupt, FileOf(file.sha256).string() + " is missing or damaged"};
    if (chmod(made->second.c_str(), kPrivate) != 0)
      return FileError("protect", made->second, errno);
    std::error_code failed;
    fs::rename(made->second, FileOf(file.sha256), failed);
    if (failed) return FileError("write", FileOf(file.sha256), failed.value());
  }
  return {};
}

}  // namespace attune::server

#include "server/folder/code_copy.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "code/manifest.h"
#include "server/folder/code_files.h"
#include "system/files.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

// Copies a file between two folders with snapshots, unless it is there.
Status CopyStoredFile(const fs::path& from, const code::File& file, const fs::path& to) {
  const fs::path target = to / "files" / file.sha256;
  std::error_code absent;
  if (file.bytes == 0 || fs::exists(target, absent)) return {};
  const auto opened = checkpoints::OpenFile(from / "files", file.sha256);
  if (!opened.ok()) return Error{ErrorCode::kCorrupt, opened.error().message};
  const fs::path draft = to / "files" / ("." + file.sha256);
  const Result<std::string> hash = CopyRange(opened->file.get(), 0, file.bytes, draft);
  if (!hash.ok()) return hash.error();
  std::error_code failed;
  if (*hash == file.sha256) fs::rename(draft, target, failed);
  if (failed) return FileError("write", target, failed.value());
  if (*hash == file.sha256) return {};
  fs::remove(draft, failed);
  return Error{ErrorCode::kCorrupt,
               (from / "files" / file.sha256).string() + " does not have its hash; it is damaged"};
}

}  // namespace

Status CopySnapshots(const fs::path& from, const fs::path& to) {
  const auto snapshots = EntriesOf(from / "snapshots");
  if (!snapshots.ok()) return snapshots.error();
  if (snapshots->empty()) return {};
  for (const char* name : {"files", "snapshots"}) {
    if (Status made = MakeFolder(to / name); !made.ok()) return made;
  }
  std::error_code failed;
  for (const fs::path& entry : *snapshots) {
    if (!IsHashName(entry)) continue;  // a draft
    const Result<std::string> text = ReadWhole(entry);
    if (!text.ok()) return text.error();
    if (text->empty()) continue;  // the server has just deleted it
    const Result<code::Manifest> manifest = code::ParseManifest(*text);
    if (!manifest.ok())
      return Error{ErrorCode::kCorrupt, entry.string() + ": " + manifest.error().message};
    Status copied;
    for (const code::File& file : manifest->files) {
      if (copied.ok()) copied = CopyStoredFile(from, file, to);
    }
    if (!copied.ok() && !fs::exists(entry, failed)) continue;  // the server has just deleted it
    if (!copied.ok()) return copied;
    if (Status synced = SyncFileSystem(to); !synced.ok()) return synced;
    if (Status written = WriteWhole(to / "snapshots" / entry.filename(), *text, kPrivate);
        !written.ok())
      return written;
  }
  return {};
}

}  // namespace attune::server

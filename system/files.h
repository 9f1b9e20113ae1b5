#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// File modes.
inline constexpr mode_t kPrivate = 0600;  // only the owner has access
// only the owner, once KeepFilesPrivate() was called
inline constexpr mode_t kReadableByAll = 0644;

// Replaces a small file atomically and durably: a reader sees the old or the new text, even after a
// power cut. Several processes may write the same file, even on several hosts. Errors: see
// SystemError().
Status WriteWhole(const std::filesystem::path& path, std::string_view text, mode_t mode);

// Renames the complete file `draft` to `path` durably, and replaces what is there. `file` is a
// descriptor of the draft. Errors: see SystemError().
Status Publish(int file, const std::filesystem::path& draft, const std::filesystem::path& path);

// Makes the names in the folder durable. Some file systems cannot do this; that is no error.
Status SyncFolder(const std::filesystem::path& folder);

// Writes all of `bytes` at `offset`, or at the end of a file that was opened with O_APPEND. Returns
// false and sets errno if it fails.
bool WriteAt(int file, std::string_view bytes, off_t offset);

// The total size of all files below a folder. Files that cannot be read count as 0 bytes.
uint64_t TotalFileBytes(const std::filesystem::path& folder);

// Returns whether the disk of the folder, and this user's quota, have space for
// kFreeSpaceProbeBytes more. Writes that many bytes to a temporary file without a sync. Also
// returns true if it cannot try.
bool HasFreeSpace(const std::filesystem::path& folder);
inline constexpr size_t kFreeSpaceProbeBytes = 1 << 20;

// The whole text of a file; empty if there is no file. Errors: see SystemError().
Result<std::string> ReadWhole(const std::filesystem::path& path);

// Like ReadWhole, without blanks and newlines at the end, for files that hold one word.
Result<std::string> ReadWord(const std::filesystem::path& path);

// Opens a lock file and locks it until the descriptor is closed or the process ends. Creates the
// file if it is missing. kConflict: another process holds the lock. Other errors: see
// SystemError().
Result<UniqueFd> LockFile(const std::filesystem::path& path, mode_t mode);

}  // namespace attune

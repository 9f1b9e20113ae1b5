#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// Modes of files.
inline constexpr mode_t kPrivate = 0600;        // for its owner
inline constexpr mode_t kReadableByAll = 0644;  // unless KeepFilesPrivate() was called

// Writes a small file whole, in place of the one that may be there: a reader sees one of the two,
// also after a power cut. Several processes may write the same file, even on several hosts. Errors:
// as of SystemError().
Status WriteWhole(const std::filesystem::path& path, std::string_view text, mode_t mode);

// Gives a complete file its name, in place of the one that may be there, durably. Errors: as of
// SystemError().
Status Publish(int file, const std::filesystem::path& draft, const std::filesystem::path& path);

// Makes the names in the folder durable, as far as its filesystem can.
Status SyncFolder(const std::filesystem::path& folder);

// Writes all of `bytes` to the file, from `offset` on, or at its end if it was opened with
// O_APPEND. False with errno set.
bool WriteAt(int file, std::string_view bytes, off_t offset);

// Bytes of all files below a folder; of what cannot be read, none.
uint64_t BytesIn(const std::filesystem::path& folder);

// Whether the folder's disk, and the quota of this user there, takes kRoomTriedBytes more: they are
// written and deleted, but not synced. True as well if this cannot be tried.
bool HasRoom(const std::filesystem::path& folder);
inline constexpr size_t kRoomTriedBytes = 1 << 20;

// The whole text of a file; empty if there is no file. Errors: as of SystemError().
Result<std::string> ReadWhole(const std::filesystem::path& path);

// The same without blanks and newlines at its end: for files that hold one word.
Result<std::string> ReadWord(const std::filesystem::path& path);

// Opens a lock file, which is made if it is missing, and locks it until the descriptor is closed,
// however the process ends. kConflict: another process holds it. Other errors: as of SystemError().
Result<UniqueFd> LockFile(const std::filesystem::path& path, mode_t mode);

}  // namespace attune

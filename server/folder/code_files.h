#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Operations on the files of CodeStorage. Errors: see SystemError().
namespace attune::server {

// The error of a failed operation: "cannot `what` `path`", with the reason.
Error FileError(const std::string& what, const std::filesystem::path& path, int error);

// Makes a folder and its parents if they do not exist.
Status MakeFolder(const std::filesystem::path& folder);

// The entries of a folder; empty if there is no such folder.
Result<std::vector<std::filesystem::path>> EntriesOf(const std::filesystem::path& folder);

// Whether the name is the hash of a file or a snapshot, and not a draft.
bool IsHashName(const std::filesystem::path& entry);

// Makes everything durable that was written to the file system of this folder.
Status SyncFileSystem(const std::filesystem::path& folder);

// kStorageFull: the disk of this folder is almost full, so that no code must be added.
Status CheckFreeSpace(const std::filesystem::path& folder);

// Appends to a file that has `offset` bytes. If it fails, the file keeps these bytes.
Status AppendTo(const std::filesystem::path& path, uint64_t offset, std::string_view bytes);

// Deletes a file, or a folder with its files. A failure is logged.
void RemoveAll(const std::filesystem::path& path);

// Copies a range of `from` to the new file `to` and returns its hash.
Result<std::string> CopyRange(int from, off_t offset, uint64_t bytes,
                              const std::filesystem::path& to);

}  // namespace attune::server

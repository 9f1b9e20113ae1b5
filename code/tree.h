#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/result.h"
#include "checkpoints/download.h"
#include "code/manifest.h"

// The copy of a snapshot on a host: a folder with
//
//   manifest   the text of the manifest
//   tree/      the files, which nobody may write, and the links
//   stamps     the size and times of each file, to find changes without reading the files
namespace attune::code {

// The names of the two parts of a snapshot, as in checkpoints::DownloadSource::read.
inline constexpr std::string_view kManifestPart = "manifest";
inline constexpr std::string_view kPackPart = "pack";

std::filesystem::path TreeOf(const std::filesystem::path& copy);

// Reads the manifest of a copy. kCorrupt: it is missing or damaged.
Result<Manifest> ReadCopiedManifest(const std::filesystem::path& copy);

// Downloads a snapshot to the folder `out`, which appears when every file has its hash. If `out`
// exists, the new copy replaces it in one step. An interrupted download resumes at the byte where
// it stopped. One process at a time may download to `out`. The result is that of
// checkpoints::Download().
checkpoints::Downloaded DownloadCopy(const checkpoints::DownloadSource& source,
                                     const std::filesystem::path& out,
                                     uint64_t disk_free_bytes_min);

// Checks that the copy still is the snapshot with this digest. Reads only files whose stamps have
// changed. Folders named __pycache__ do not count. kCorrupt, with a message that names the first
// difference.
Status VerifyCopy(const std::filesystem::path& copy, const std::string& digest);

// Makes the folders below `root`, and `root` itself, writable for the owner. Follows no link.
void MakeFoldersWritable(const std::filesystem::path& root);

// Deletes a copy, although its folders are read-only. The folder may be missing.
std::error_code RemoveCopy(const std::filesystem::path& copy);

// Makes the folder `work` for a program that runs in its folder `directory`; empty: in `work`.
//
// If not `writable`, `directory` and the folders around it are real, so that the program can write
// there, and their other entries are links to those of the tree. Files that the program has written
// stay. If `writable`, `work` is a copy of the tree, which the first call makes. Errors: see
// SystemError().
Status MakeWorkFolder(const std::filesystem::path& copy, const std::filesystem::path& work,
                      const std::filesystem::path& directory, bool writable);

}  // namespace attune::code

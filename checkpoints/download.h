#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "checkpoints/piece.h"

namespace attune::checkpoints {

struct DownloadSource {
  std::string name;    // the checkpoint in messages, such as s1/17/2-900
  std::string digest;  // the digest of its manifest: sha256:…
  // Reads a part of a file from the offset. The source decides how many bytes it returns. One
  // thread at a time calls this. `memory` is the string of an earlier piece; the new data can reuse
  // it, because fresh memory costs as much time as copying.
  std::function<Result<Piece>(const std::string& file, uint64_t offset, std::string memory)> read;
};

struct Downloaded {
  // - kConflict: `out` exists.
  // - kUnavailable: another process is downloading the checkpoint.
  // - kStorageFull, kDenied: errors of the file system.
  // - kCorrupt: the source's data does not match the digest.
  // - other codes: errors of the source.
  Status status;
  std::filesystem::path part;  // the folder for an incomplete download
  size_t files = 0;            // without the manifest
  uint64_t bytes = 0;
  uint64_t fetched = 0;  // bytes of this call; an earlier call fetched the others
};

// Reads a whole small file of the source, such as its manifest. kCorrupt: the file is longer than
// `bytes_max`, or ends too early; other codes: errors of the source.
Result<std::string> FetchText(const DownloadSource& source, const std::string& file,
                              uint64_t bytes_max);

// Downloads a checkpoint to the folder `out`. The folder appears when the checkpoint is complete
// and every file has the hash in the manifest.
//
// Until then, the files are in a hidden folder next to `out`, named by the digest. After an
// interruption, the next call resumes each file at the byte that it had reached. Nothing is written
// outside these two folders, even if the source sends malicious names.
//
// kStorageFull: the checkpoint would leave less than `disk_free_bytes_min` of the disk free. Then
// nothing is downloaded.
//
// `progress` gets the bytes on disk and the bytes of the whole checkpoint.
Downloaded Download(const DownloadSource& source, const std::filesystem::path& out,
                    const std::function<void(uint64_t bytes_done, uint64_t bytes_all)>& progress,
                    uint64_t disk_free_bytes_min = 0);

}  // namespace attune::checkpoints

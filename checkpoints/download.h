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
  std::string name;    // of the checkpoint, for messages: s1/17/2-900
  std::string digest;  // of its manifest: sha256:…
  // Part of a file, from the offset on: as much as the source likes to give. Called by one thread
  // at a time. `memory` is what an earlier piece had, for this one's data: fresh memory costs as
  // much as copying.
  std::function<Result<Piece>(const std::string& file, uint64_t offset, std::string memory)> read;
};

struct Downloaded {
  // kConflict: `out` exists. kUnavailable: another process is downloading it. kStorageFull,
  // kDenied: from the file system. kCorrupt: the source has something else than the digest says.
  // Else the source's error.
  Status status;
  std::filesystem::path part;  // where what has arrived stays meanwhile
  size_t files = 0;            // beside the manifest
  uint64_t bytes = 0;
  uint64_t fetched = 0;  // of these, now: the others were there already
};

// Brings a checkpoint into the folder `out`, which appears when it is complete and every file has
// the hash that the manifest says. Until then it grows in a hidden folder beside it, named by the
// digest: whoever was cut off goes on there, in each file at the byte that it had. Nothing is
// written outside of these two, whatever the source says.
//
// One that would leave less than `disk_free_bytes_min` of the disk free is not begun: kStorageFull.
//
// `progress` is told how much of how much is there.
Downloaded Download(const DownloadSource& source, const std::filesystem::path& out,
                    const std::function<void(uint64_t there, uint64_t all)>& progress,
                    uint64_t disk_free_bytes_min = 0);

}  // namespace attune::checkpoints

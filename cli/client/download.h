#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/base/result.h"

namespace attune::cli {

// Part of a file, from the offset that was asked for on: as much as the source likes to give.
struct FilePiece {
  std::string data;
  uint64_t file_bytes = 0;  // size of the file
};

struct DownloadSource {
  std::string name;    // of the checkpoint, for messages: s1/17/2-900
  std::string digest;  // of its manifest: sha256:…
  // Called by one thread at a time.
  std::function<Result<FilePiece>(const std::string& file, uint64_t offset)> read;
};

struct Downloaded {
  size_t files = 0;  // beside the manifest
  uint64_t bytes = 0;
  uint64_t fetched = 0;  // of these, now: the others were there already
};

// Brings a checkpoint into the folder `out`, which appears when it is complete and every file has
// the hash that the manifest says. Until then it grows in a hidden folder beside it, named by the
// digest: whoever was cut off goes on there, in each file at the byte that it had. Nothing is
// written outside of these two, whatever the source says.
//
// `progress` is told how much of how much is there. Errors: kConflict when `out` is there or
// another process is at it, kStorageFull, kCorrupt when the source has something else than the
// digest says, kUnavailable and others as the source has them; they say what to do.
Result<Downloaded> Download(const DownloadSource& source, const std::filesystem::path& out,
                            const std::function<void(uint64_t there, uint64_t all)>& progress);

}  // namespace attune::cli

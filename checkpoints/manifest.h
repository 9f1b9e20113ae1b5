#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/message_limits.h"
#include "base/result.h"

namespace attune::checkpoints {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kDigestPrefix = "sha256:";  // prefix of a digest
inline constexpr size_t kManifestBytesMax = 64 << 20;

// Maximum size of all files of a checkpoint: the largest integer that every JSON reader reads
// exactly.
inline constexpr uint64_t kFilesBytesMax = (uint64_t{1} << 53) - 1;

// Check digests before they become part of a folder's name.
using attune::IsDigest;

// The digest of a checkpoint whose manifest is this text.
std::string DigestOf(std::string_view manifest);

// A file in a manifest.
struct FileEntry {
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits

  bool operator==(const FileEntry&) const = default;
};

// manifest.json of a checkpoint's folder (docs/reference/worker-channel.md).
struct Manifest {
  int64_t step = 0;
  int64_t time = 0;  // the step on the server; differs from `step` if a metric is the time
  int world_size = 1;
  std::map<std::string, FileEntry> files;  // without the manifest; all names are valid
};

std::string ToJson(const Manifest& manifest);

// Parses a manifest. kCorrupt: the text is malformed or does not have the digest. An empty digest
// is not compared.
Result<Manifest> ReadManifest(std::string_view text, std::string_view digest);

}  // namespace attune::checkpoints

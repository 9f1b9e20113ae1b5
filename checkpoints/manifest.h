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
inline constexpr std::string_view kDigestPrefix = "sha256:";  // of a checkpoint's digest
inline constexpr size_t kManifestBytesMax = 64 << 20;

// Of all files of a checkpoint: what any reader of JSON tells exactly.
inline constexpr uint64_t kFilesBytesMax = (uint64_t{1} << 53) - 1;

// Of a checkpoint. What is none names no folder.
using attune::IsDigest;

// The digest of a checkpoint whose manifest is this text.
std::string DigestOf(std::string_view manifest);

struct Listed {
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits

  bool operator==(const Listed&) const = default;
};

// manifest.json of a checkpoint's folder (docs/reference/worker-channel.md).
struct Manifest {
  int64_t step = 0;
  int64_t time = 0;  // the step as the server counts it; another where a metric is its time
  int world_size = 1;
  std::map<std::string, Listed> files;  // all but the manifest; NameFault() has no fault to find
};

std::string ToJson(const Manifest& manifest);

// The manifest with this text. kCorrupt: it is malformed, or does not have the digest; an empty
// digest is not compared.
Result<Manifest> ReadManifest(std::string_view text, std::string_view digest);

}  // namespace attune::checkpoints

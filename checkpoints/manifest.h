#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace attune::checkpoints {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kDigestPrefix = "sha256:";  // of a checkpoint's digest
inline constexpr size_t kManifestBytesMax = 64 << 20;

// Of all files of a checkpoint: what any reader of JSON tells exactly.
inline constexpr uint64_t kFilesBytesMax = (uint64_t{1} << 53) - 1;

// Whether this is a checkpoint's digest: sha256: and 64 lower-case hex digits. What is none names
// no folder.
bool IsDigest(std::string_view digest);

struct Listed {
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits

  bool operator==(const Listed&) const = default;
};

// manifest.json of a checkpoint's folder (docs/worker-channel.md).
struct Manifest {
  std::string error;                    // empty when there is none
  std::map<std::string, Listed> files;  // all but the manifest; NameFault() has no fault to find
};

// `digest`: that of the checkpoint, which the text has to have.
Manifest ReadManifest(std::string_view text, std::string_view digest);

}  // namespace attune::checkpoints

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "code/manifest.h"

namespace attune::code {

inline constexpr size_t kPatchBytesMax = 10'000'000;

// The path of the stored file with this SHA-256. Empty files need none.
using StoredPath = std::function<std::filesystem::path(const std::string& sha256)>;

// A snapshot with a patch.
struct Patched {
  Manifest manifest;
  // The new contents, by SHA-256: files in the scratch folder. Contents that the snapshot had
  // before may be among them.
  std::map<std::string, std::filesystem::path> files;
};

// Applies a unified diff, as `git diff`, `git format-patch` or `diff -u` write it, to a snapshot.
// Paths in the patch begin at the snapshot's root. The result is that of `git apply` in a folder
// with the snapshot, without a configuration of git. A patch that changes links, renames files, and
// also replaces a file or link by a folder (or a folder by one) must be split or have no renames.
//
// Do not trust the patch. git sees only copies of the files that it names, and has limits of time
// and memory. Runs git in this thread, which waits.
//
// `scratch` is an empty folder, which the caller deletes. `bytes_max` limits the files of the
// result. Errors:
// - kInvalid: the patch is empty, malformed or larger than kPatchBytesMax; it does not apply (the
//   message has the file and line); the result is too large, or breaks a rule of CheckManifest().
// - kUnavailable: git is missing, or failed for another reason.
// - kStorageFull: the disk of `scratch` is full. Others: see SystemError().
Result<Patched> ApplyPatch(std::string_view patch, const Manifest& manifest,
                           const StoredPath& stored, const std::filesystem::path& scratch,
                           uint64_t bytes_max);

}  // namespace attune::code

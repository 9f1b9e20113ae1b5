#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace attune::code {

// Limits of a snapshot. The number of bytes has a limit of the server, too.
inline constexpr size_t kEntriesMax = 20'000;  // files and links
inline constexpr size_t kPathBytesMax = 1'024;
inline constexpr size_t kManifestBytesMax = 8 << 20;
inline constexpr uint64_t kDefaultBytesMax = 100'000'000;

// Python writes to such folders, also in the copies of a snapshot, so snapshots have none.
inline constexpr std::string_view kPythonCacheName = "__pycache__";

struct File {
  std::string path;  // relative, with / between names
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits
  bool executable = false;

  bool operator==(const File&) const = default;
};

// A symbolic link to a file or folder of the snapshot.
struct Link {
  std::string path;
  std::string target;  // relative to the folder of the link

  bool operator==(const Link&) const = default;
};

// The contents of a code snapshot. Empty folders are not kept, as in git.
struct Manifest {
  std::vector<File> files;  // sorted by the bytes of their paths, like links
  std::vector<Link> links;

  uint64_t bytes() const;
  bool operator==(const Manifest&) const = default;
};

// The manifest as text. Equal snapshots have equal texts:
//
//   attune-code/1
//   file<TAB>644 or 755<TAB>BYTES<TAB>SHA256<TAB>PATH
//   link<TAB>TARGET<TAB>PATH
//
// One line an entry: first the files, then the links.
std::string ToText(const Manifest& manifest);

// The identity of a snapshot: sha256: and the hash of its manifest's text.
std::string DigestOf(std::string_view manifest_text);

// Parses a manifest of a client that is not trusted. kInvalid: the text is not a manifest, or
// CheckManifest() fails.
Result<Manifest> ParseManifest(std::string_view text);

// Whether an entry of a manifest may have this path; see CheckManifest().
Status CheckPath(std::string_view path);

// Whether a folder with these entries is the same on every system. kInvalid, with a message that
// names the path:
// - A path is not valid UTF-8, has a control character, leads out of the folder, or is too long.
// - Two paths are equal, differ only in the case of letters, or one is a folder of the other.
// - A link leads out of the folder, to nothing, or in a circle.
// - There are more than kEntriesMax entries, or the sum of the sizes is not exact in JSON.
// - Files of different sizes have the same hash.
// REQUIRES: files and links are sorted.
Status CheckManifest(const Manifest& manifest);

}  // namespace attune::code

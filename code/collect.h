#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "code/manifest.h"
#include "system/command.h"

namespace attune::code {

// The key `code` of a sweep file.
struct CollectOptions {
  // Patterns of files that belong to the code although git or .attuneignore ignores them. A path
  // without wildcards also includes a file that looks like a secret.
  std::vector<std::string> include;
  // Patterns of files that do not belong to the code, even if `include` matches them.
  std::vector<std::string> exclude;
  uint64_t bytes_max = kDefaultBytesMax;
};

struct Collected {
  Manifest manifest;
  std::string commit;  // the checked-out git commit; empty outside of a git repository
  bool dirty = false;  // whether a tracked file differs from the commit, or a file is new
};

// Lists and hashes the files of a folder that belong to a sweep's code:
//
// - In a git repository: the files below the folder that git tracks or does not ignore, also those
//   of submodules. Elsewhere all files. In both cases without the files that match the patterns in
//   the folder's .attuneignore.
// - Files of `include`, and no files of `exclude`.
// - Never .git, __pycache__ and data folders of attune. Sockets and devices are skipped.
//
// Errors, each with a message that names the file and the next step:
// - kNotFound: there is no such folder.
// - kInvalid: a pattern is malformed; a file looks like a secret; the files are larger than
//   `bytes_max`; see also CheckManifest().
// - kConflict: a file changed while it was read.
// - kUnavailable: git is missing or failed.
// - others: see SystemError().
Result<Collected> Collect(const std::filesystem::path& folder, const CollectOptions& options,
                          Commands& commands);

}  // namespace attune::code

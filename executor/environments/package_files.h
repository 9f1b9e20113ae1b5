#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/gang/spec.h"

namespace attune::agent {

enum class PackageFilesKind {
  kRequirements,  // as pip reads them
  kProject,       // pyproject.toml
  kLock           // uv.lock
};

// Files that describe the packages of an environment. They were checked: other hosts can install
// the same packages from them.
struct PackageFiles {
  PackageFilesKind kind = PackageFilesKind::kRequirements;
  std::filesystem::path file;
  std::filesystem::path wheels;  // empty: none
  bool names_sources = false;    // with kProject: it has [tool.uv.sources], which only uv reads
  std::string digest;            // of everything that the files say; 64 hex digits
};

inline constexpr uint64_t kPackageFileBytesMax = 16 << 20;
inline constexpr size_t kPackageFilesMax = 100;  // files of requirements that refer to each other

// Reads the files. The digest covers
//
//   - requirements, and the files that they refer to by -r and -c,
//   - uv.lock or pyproject.toml, and pyproject.toml and uv.toml next to any file, because they
//     contain settings of uv,
//   - the names and sizes of wheels, and their last bytes, which contain the checksums of a wheel.
//
// Errors: kInvalid if a file is missing, leaves the root, or names a package in a local folder. A
// folder of wheels whose path does not start with the root may be anywhere.
Result<PackageFiles> ReadPackageFiles(const gang::EnvironmentFiles& files);

}  // namespace attune::agent

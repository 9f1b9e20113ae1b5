#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "object_storage/settings.h"

namespace attune::object_storage {

// The installed rclone.
struct Rclone {
  std::filesystem::path program;
  std::string version;  // such as 1.60.1
};

// Debian 12 has this version.
inline constexpr int kRcloneMajorMin = 1;
inline constexpr int kRcloneMinorMin = 60;

// Finds rclone: the path in the variable ATTUNE_RCLONE, else in PATH, else next to this program,
// where pip installs it. Runs it once for its version. Errors: kNotFound if it is missing, kInvalid
// if it is too old or does not run. Each message says how to install it.
Result<Rclone> FindRclone(const Environment& environment);

// Whether FindRclone() would find a program. Does not run it.
bool HasRclone(const Environment& environment);

}  // namespace attune::object_storage

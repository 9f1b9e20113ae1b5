#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/result.h"
#include "object_storage/rclone.h"
#include "object_storage/settings.h"

namespace attune::server {

// An environment with the rclone that `scripts/setup tests` installs, if it is there.
inline object_storage::Environment StoreEnvironment() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string rclone = variable("ATTUNE_RCLONE");
  const std::string installed = std::string(ATTUNE_SOURCE_DIR) + "/.deps/python-storage/bin/rclone";
  if (rclone.empty() && std::filesystem::exists(installed)) rclone = installed;
  return {"PATH=" + variable("PATH"), "HOME=/nonexistent", "ATTUNE_RCLONE=" + rclone};
}

// Why the tests of stores cannot run here; empty: they can.
inline std::string WhyNoStore() {
  const auto rclone = object_storage::FindRclone(StoreEnvironment());
  return rclone.ok() ? "" : rclone.error().message;
}

inline void WriteTestFile(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace attune::server

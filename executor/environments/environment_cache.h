#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace attune::agent {

// Virtual environments in a folder. Each has a folder, named by its key:
//
//   venv/       the environment. It cannot be moved, because its files contain this path
//   build.log   the output of the build
//   complete    the number of bytes of the environment; written last, so that an environment whose
//               build was interrupted is not used. The time of this file is the last use
//
// Not thread-safe; no other process may use the folder.
class EnvironmentCache {
 public:
  explicit EnvironmentCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path FolderOf(const std::string& key) const { return folder_ / key; }
  std::filesystem::path EnvironmentOf(const std::string& key) const {
    return folder_ / key / "venv";
  }
  std::filesystem::path LogOf(const std::string& key) const { return folder_ / key / "build.log"; }

  // Whether the environment is complete. If so, marks it as used now.
  bool Use(const std::string& key) const;

  // Makes the folder for a new build. Deletes everything that is not complete: interrupted builds,
  // and logs of failed builds.
  Status Begin(const std::string& key) const;

  // Marks the environment as complete when all of its files are on the disk.
  Status Complete(const std::string& key) const;

  // Deletes the environment of a build that has failed, but not its log.
  void Discard(const std::string& key) const;

  // Deletes the least recently used environments until all have at most `bytes_max` bytes. Those in
  // use stay, and those that were in use within the time `kept`.
  void Evict(uint64_t bytes_max, std::chrono::seconds kept,
             const std::set<std::string>& in_use) const;

 private:
  void Remove(const std::filesystem::path& folder) const;

  const std::filesystem::path folder_;
};

}  // namespace attune::agent

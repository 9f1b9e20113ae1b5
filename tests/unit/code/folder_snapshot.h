#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/result.h"
#include "code/manifest.h"
#include "system/sha256.h"

namespace attune::code {

// A snapshot of all files of a folder except .git, and where they are.
struct FolderSnapshot {
  explicit FolderSnapshot(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    for (auto entry = fs::recursive_directory_iterator(folder);
         entry != fs::recursive_directory_iterator(); ++entry) {
      const std::string path = entry->path().lexically_relative(folder).string();
      if (path == ".git") {
        entry.disable_recursion_pending();
      } else if (entry->is_symlink()) {
        manifest.links.push_back({path, fs::read_symlink(entry->path()).string()});
      } else if (entry->is_regular_file()) {
        const std::string hash = Sha256::HexOfFile(entry->path()).value();
        const bool executable =
            (entry->status().permissions() & fs::perms::owner_exec) != fs::perms::none;
        manifest.files.push_back({path, entry->file_size(), hash, executable});
        files[hash] = entry->path();
      }
    }
    std::ranges::sort(manifest.files, {}, &File::path);
    std::ranges::sort(manifest.links, {}, &Link::path);
  }

  Manifest manifest;
  std::map<std::string, std::filesystem::path> files;  // by SHA-256
};

inline void WriteFile(const std::filesystem::path& path, const std::string& text,
                      bool executable = false) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), executable ? 0755 : 0644);
}

}  // namespace attune::code

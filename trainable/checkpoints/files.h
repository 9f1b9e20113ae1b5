#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// A new file that is written sequentially; SyncPath() makes it durable. Functions throw
// attune::Error with the file's name if the file already exists, or if the disk refuses.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& file);

  // Uses an open and empty file; `name` is for error messages.
  NewFile(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  void Append(std::string_view bytes);

 private:
  const std::string name_;
  const UniqueFd fd_;
};

// Writes a new file with these contents, and the same errors.
void WriteFile(const std::filesystem::path& file, std::string_view contents);

// Reads a whole file. Throws attune::Error if that fails.
std::string ReadFile(const std::filesystem::path& file);

// Syncs a file's contents, or a folder's entries, to the disk. Throws attune::Error.
void SyncPath(const std::filesystem::path& path);

}  // namespace attune::inline sdk::trainable

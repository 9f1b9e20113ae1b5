#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// A new file, written from its beginning to its end; SyncPath() makes it durable. Everything throws
// attune::Error that names the file: when it exists already, and when the disk refuses it.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& file);

  // One that is open already, and empty; `name` is for errors.
  NewFile(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  void Append(std::string_view bytes);

 private:
  const std::string name_;
  const UniqueFd fd_;
};

// A new file of these contents, as above.
void WriteFile(const std::filesystem::path& file, std::string_view contents);

// The whole of a file. Throws attune::Error when it cannot be read.
std::string ReadFile(const std::filesystem::path& file);

// Syncs a file's contents, or a folder's entries, to the disk. Throws attune::Error.
void SyncPath(const std::filesystem::path& path);

}  // namespace attune::inline sdk::trainable

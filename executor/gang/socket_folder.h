#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace attune::gang {

// A folder in /tmp with mode 0700 for the sockets of one executor. It is not in the data folder,
// because the path of a socket has at most 108 bytes. The destructor removes it. The next executor
// of this user removes the folders of killed executors.
class SocketFolder {
 public:
  static Result<SocketFolder> Make(const std::filesystem::path& parent = "/tmp");

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::filesystem::path& path() const { return path_; }

  // A new path in the folder.
  std::filesystem::path Next() { return path_ / std::to_string(++last_); }

 private:
  explicit SocketFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: moved from
  uint64_t last_ = 0;
};

}  // namespace attune::gang

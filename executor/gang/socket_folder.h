#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace attune::gang {

// A folder in /tmp with mode 0700 for the sockets of one executor: paths of sockets have at most
// 108 bytes, and a data folder may be deep. It is removed at the end; the next executor of this
// user removes those of processes that were killed.
class SocketFolder {
 public:
  static Result<SocketFolder> Make(const std::filesystem::path& parent = "/tmp");

  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::filesystem::path& path() const { return path_; }

  // A path in the folder that was not returned before.
  std::filesystem::path Next() { return path_ / std::to_string(++last_); }

 private:
  explicit SocketFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: moved from
  uint64_t last_ = 0;
};

}  // namespace attune::gang

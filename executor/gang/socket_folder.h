#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::gang {

// A socket that listens at a path. The listener does not block.
struct PathSocket {
  std::filesystem::path path;
  UniqueFd listener;
};

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

  // Gives a socket whose path was not used before. Uses returned sockets again, because ext4 makes
  // files more slowly for minutes after many were deleted.
  Result<PathSocket> Take();

  // Renames the socket, so that programs of an ended gang do not find it, and closes connections
  // that were not accepted.
  void Return(PathSocket socket);

 private:
  explicit SocketFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path NextPath() { return path_ / std::to_string(++last_); }

  std::filesystem::path path_;  // empty: moved from
  uint64_t last_ = 0;
  std::vector<PathSocket> free_;
};

}  // namespace attune::gang

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
// because the path of a socket has at most 108 bytes. The destructor removes it. The executor holds
// a lock on its folder, so the next executor of this user can remove the folders of killed
// executors. Locks work across containers that share /tmp; process numbers do not.
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
  SocketFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path NextPath() { return path_ / std::to_string(++last_); }

  std::filesystem::path path_;  // empty: moved from
  UniqueFd lock_;
  uint64_t last_ = 0;
  std::vector<PathSocket> free_;
};

}  // namespace attune::gang

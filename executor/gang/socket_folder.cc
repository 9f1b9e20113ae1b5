#include "executor/gang/socket_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "system/system_error.h"
#include "system/unix_sockets.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

constexpr int kAttemptsMax = 10;

// The start of a folder's name, which is attune-USER-RANDOM.
std::string Prefix() { return "attune-" + std::to_string(geteuid()) + "-"; }

// Locks the folder. Empty if another process holds the lock, or if the folder is not of this user
// or no longer at this path.
UniqueFd TryLock(const fs::path& folder) {
  UniqueFd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat locked {};
  struct stat named {};
  if (!lock || fstat(lock.get(), &locked) != 0 || locked.st_uid != geteuid() ||
      flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return UniqueFd();
  // Another executor may have removed the folder before it was locked.
  if (lstat(folder.c_str(), &named) != 0 || named.st_ino != locked.st_ino) return UniqueFd();
  return lock;
}

void RemoveLeftFolders(const fs::path& parent) {
  std::error_code failed;
  for (auto entry = fs::directory_iterator(parent, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with(Prefix())) continue;
    const UniqueFd lock = TryLock(entry->path());
    std::error_code ignored;
    if (lock) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<SocketFolder> SocketFolder::Make(const fs::path& parent) {
  RemoveLeftFolders(parent);
  for (int i = 0; i < kAttemptsMax; ++i) {
    std::string path = parent / (Prefix() + "XXXXXX");
    if (mkdtemp(path.data()) == nullptr)
      return SystemError("cannot make a folder for sockets in " + parent.string(), errno);
    // Another executor that starts now may see the folder before it is locked, and remove it.
    if (UniqueFd lock = TryLock(path)) return SocketFolder(path, std::move(lock));
  }
  return Error{ErrorCode::kUnavailable,
               "cannot lock a folder for sockets in " + parent.string() +
                   ": its file system has no locks, or other executors remove it"};
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::move(other.lock_)),
      last_(other.last_),
      free_(std::move(other.free_)) {}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<PathSocket> SocketFolder::Take() {
  if (!free_.empty()) {
    PathSocket socket = std::move(free_.back());
    free_.pop_back();
    return socket;
  }
  fs::path path = NextPath();
  Result<UniqueFd> listener = ListenAtPath(path);
  if (!listener.ok()) return listener.error();
  fcntl(listener->get(), F_SETFL, O_NONBLOCK);
  return PathSocket{std::move(path), std::move(*listener)};
}

void SocketFolder::Return(PathSocket socket) {
  fs::path path = NextPath();
  std::error_code failed;
  fs::rename(socket.path, path, failed);
  if (failed) return;  // closes the socket
  while (UniqueFd(accept4(socket.listener.get(), nullptr, nullptr, SOCK_CLOEXEC))) {
  }
  free_.push_back({std::move(path), std::move(socket.listener)});
}

}  // namespace attune::gang

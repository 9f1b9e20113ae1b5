#include "executor/gang/socket_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "system/system_error.h"
#include "system/unix_sockets.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

// The start of a folder's name, which is attune-USER-PROCESS-RANDOM.
std::string Prefix() { return "attune-" + std::to_string(geteuid()) + "-"; }

bool IsOfThisUser(const fs::path& folder) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

// Whether the process in the name has ended.
bool IsGone(std::string_view name) {
  pid_t process = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
  if (read.ec != std::errc() || process <= 0) return false;
  return kill(process, 0) != 0 && errno == ESRCH;
}

void RemoveLeftFolders(const fs::path& parent) {
  const std::string prefix = Prefix();
  std::error_code failed;
  for (auto entry = fs::directory_iterator(parent, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || !IsGone(std::string_view(name).substr(prefix.size())) ||
        !IsOfThisUser(entry->path()))
      continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<SocketFolder> SocketFolder::Make(const fs::path& parent) {
  RemoveLeftFolders(parent);
  std::string path = parent / (Prefix() + std::to_string(getpid()) + "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return SystemError("cannot make a folder for sockets in " + parent.string(), errno);
  return SocketFolder(path);
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), last_(other.last_), free_(std::move(other.free_)) {}

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

#include "system/unix_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "system/system_error.h"

namespace attune {
namespace {

constexpr int kBacklogMax = 128;  // connections that wait for accept()
constexpr mode_t kOwnerOnly = 0600;

// A socket address has 108 bytes for the path. The name uses a descriptor of the folder instead of
// the folder's path, which may be longer.
struct NamedSocket {
  UniqueFd folder;
  UniqueFd socket;
  sockaddr_un address{};

  const sockaddr* name() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Returns nullopt and sets errno if it fails.
std::optional<NamedSocket> NameSocket(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  NamedSocket named{.folder = UniqueFd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
                    .socket = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  if (!named.folder || !named.socket) return std::nullopt;
  const std::string name =
      "/proc/self/fd/" + std::to_string(named.folder.get()) + "/" + path.filename().string();
  if (name.size() >= sizeof(named.address.sun_path)) {
    errno = ENAMETOOLONG;
    return std::nullopt;
  }
  named.address.sun_family = AF_UNIX;
  name.copy(named.address.sun_path, name.size());
  return named;
}

}  // namespace

Result<UniqueFd> ListenAtPath(const std::filesystem::path& path) {
  auto named = NameSocket(path);
  if (!named) return SystemError("cannot listen at " + path.string(), errno);
  const int socket = named->socket.get();
  unlinkat(named->folder.get(), path.filename().c_str(), 0);
  // The mode of a socket is the mode of the file that names it.
  if (fchmod(socket, kOwnerOnly) != 0 || bind(socket, named->name(), sizeof(named->address)) != 0 ||
      listen(socket, kBacklogMax) != 0)
    return SystemError("cannot listen at " + path.string(), errno);
  return std::move(named->socket);
}

Result<UniqueFd> ConnectToPath(const std::filesystem::path& path) {
  auto named = NameSocket(path);
  if (named && connect(named->socket.get(), named->name(), sizeof(named->address)) == 0)
    return std::move(named->socket);
  if (errno == ENOENT || errno == ENOTDIR || errno == ECONNREFUSED)
    return Error{ErrorCode::kNotFound, "no process listens at " + path.string()};
  return SystemError("cannot connect to " + path.string(), errno);
}

std::optional<Peer> PeerOf(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return Peer{peer.pid, peer.uid};
}

}  // namespace attune

#include "server/folder/server_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "json/parse.h"
#include "system/unix_sockets.h"

namespace attune::server {
namespace {

constexpr char kSocketName[] = "server.sock";
constexpr size_t kAnswerBytesMax = 64 * 1024;
constexpr timeval kAskTimeout{.tv_sec = 2, .tv_usec = 0};
constexpr std::chrono::milliseconds kWithoutDescriptors{100};

bool IsTrusted(uid_t user) { return user == geteuid() || user == 0; }

bool OwnsFolder(uid_t user, const std::filesystem::path& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && status.st_uid == user;
}

// Reads everything that the other end sends before it closes the connection.
std::string ReadAll(int socket) {
  std::string text;
  std::array<char, 1024> part;
  while (text.size() < kAnswerBytesMax) {
    const ssize_t count = recv(socket, part.data(), part.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part.data(), static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<ServerSocket>> ServerSocket::Open(const std::filesystem::path& data_dir,
                                                         const ServerAddress& address) {
  const std::filesystem::path path = data_dir / kSocketName;
  auto listener = ListenAtPath(path);
  if (!listener.ok()) return listener.error();
  const nlohmann::json answer = {
      {"pid", address.pid}, {"http", address.http}, {"rpc", address.rpc}};
  return std::unique_ptr<ServerSocket>(
      new ServerSocket(path, *std::move(listener), answer.dump() + "\n"));
}

ServerSocket::ServerSocket(std::filesystem::path path, UniqueFd listener, std::string answer)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      answer_(std::move(answer)),
      thread_([this] { Answer(); }) {}

ServerSocket::~ServerSocket() {
  unlink(path_.c_str());
  shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
  thread_.join();
}

// No client can make this wait, because an answer fits into a socket's buffer.
void ServerSocket::Answer() {
  while (true) {
    const UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) {
      if (errno == EINVAL) return;  // shut down
      if (errno != EINTR && errno != ECONNABORTED) std::this_thread::sleep_for(kWithoutDescriptors);
      continue;
    }
    const std::optional<Peer> peer = PeerOf(client.get());
    if (peer && IsTrusted(peer->user))
      send(client.get(), answer_.data(), answer_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

Result<ServerAddress> AskServer(const std::filesystem::path& data_dir) {
  const std::filesystem::path path = data_dir / kSocketName;
  const auto socket = ConnectToPath(path);
  if (!socket.ok() && socket.error().code != ErrorCode::kNotFound)
    return Error{ErrorCode::kInternal, socket.error().message};
  const Error unavailable{ErrorCode::kUnavailable, "no server answers at " + path.string()};
  if (!socket.ok()) return unavailable;
  const std::optional<Peer> peer = PeerOf(socket->get());
  if (!peer || !(IsTrusted(peer->user) || OwnsFolder(peer->user, data_dir)))
    return Error{ErrorCode::kDenied,
                 path.string() +
                     " belongs to a process of another user, who does not own the data "
                     "folder: delete it, and start the server again"};
  setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &kAskTimeout, sizeof(kAskTimeout));
  const auto answer = ParseJson<nlohmann::json>(ReadAll(socket->get()));
  if (!answer.is_object() || !answer.contains("http")) return unavailable;
  try {
    return ServerAddress{.pid = answer.at("pid").get<pid_t>(),
                         .http = answer.at("http").get<std::string>(),
                         .rpc = answer.at("rpc").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return unavailable;
  }
}

}  // namespace attune::server

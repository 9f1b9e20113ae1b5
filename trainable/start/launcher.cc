#include "trainable/start/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "attune/error.h"

namespace attune::trainable {
namespace {

using Json = nlohmann::json;

constexpr int kProtocol = 1;
constexpr std::size_t kMaxPacketBytes = 64 << 10;
constexpr int kMaxDescriptors = 2;  // channel and log

struct Packet {
  Json json;
  std::vector<UniqueFd> descriptors;
};

// Nothing at the end of the stream.
std::optional<Packet> ReceivePacket(int socket) {
  std::vector<char> bytes(kMaxPacketBytes);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == ECONNRESET) return std::nullopt;
  if (got < 0) ThrowErrno("launcher socket");

  Packet packet;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(fd);
    }
  }
  if (got == 0) return std::nullopt;
  if ((header.msg_flags & MSG_TRUNC) != 0) throw Error("launcher: a packet exceeds 64 KiB");
  packet.json = Json::parse(bytes.data(), bytes.data() + got, nullptr, /*allow_exceptions=*/false);
  return packet;
}

// False when the executor is gone.
bool SendPacket(int socket, const Json& json, const UniqueFd* descriptor = nullptr) {
  std::string bytes = json.dump();
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor != nullptr) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = descriptor->get();
    std::memcpy(CMSG_DATA(c), &fd, sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

// What is still in a buffer at a fork would appear in the log of every rank.
void FlushOutput() {
  std::cout.flush();
  std::fflush(nullptr);
}

void CheckSingleThreaded() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  if (const auto threads = std::distance(begin(tasks), end(tasks)); threads != 1) {
    throw Error("launcher: the program has " + std::to_string(threads) +
                " threads before attune::Main(); it must not start threads, or use tensors, in "
                "static initialisers or ahead of Main()");
  }
}

// What a `fork` packet asks for, checked.
struct ForkRequest {
  std::int64_t request = 0;
  std::vector<std::string> argv;
  std::map<std::string, std::optional<std::string>> env;
  std::string cwd;
  pid_t process_group = 0;
  UniqueFd channel;
  UniqueFd log;
};

ForkRequest ParseFork(Packet packet) {
  ForkRequest fork;
  try {
    const Json& json = packet.json;
    fork.request = json.at("request").get<std::int64_t>();
    fork.argv = json.at("argv").get<std::vector<std::string>>();
    const Json env = json.value("env", Json::object());
    for (const auto& [name, value] : env.items()) {
      fork.env[name] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
    }
    fork.cwd = json.value("cwd", "");
    fork.process_group = json.value("process_group", 0);
  } catch (const Json::exception& error) {
    throw Error(std::string("launcher: malformed `fork`: ") + error.what());
  }
  if (packet.descriptors.size() != kMaxDescriptors) {
    throw Error("launcher: `fork` has to carry two descriptors, the channel and the log");
  }
  fork.channel = std::move(packet.descriptors[0]);
  fork.log = std::move(packet.descriptors[1]);
  return fork;
}

// Turns the freshly forked child into what the request describes.
Role BecomeRank(ForkRequest fork, pid_t launcher) {
  DieWithParent(launcher);
  setpgid(0, fork.process_group);
  dup2(fork.log.get(), STDOUT_FILENO);
  dup2(fork.log.get(), STDERR_FILENO);
  for (const auto& [name, value] : fork.env) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  if (!fork.cwd.empty() && chdir(fork.cwd.c_str()) != 0) {
    std::cerr << "attune: " << fork.cwd << ": " << std::strerror(errno) << std::endl;
    _exit(1);
  }
  if (!fork.argv.empty()) fork.argv.erase(fork.argv.begin());
  return {.channel = std::move(fork.channel), .args = std::move(fork.argv)};
}

class Launcher {
 public:
  explicit Launcher(UniqueFd socket) : socket_(std::move(socket)) {}

  Role Serve() {
    const Json ready = {{"type", "ready"}, {"protocol", kProtocol}, {"pid", getpid()}};
    SendPacket(socket_.get(), ready);
    while (true) {
      std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}};
      for (const auto& [pid, child] : children_) polled.push_back({child.pidfd.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      ReapEnded();
      if (polled[0].revents == 0) continue;
      std::optional<Packet> packet = ReceivePacket(socket_.get());
      if (!packet) break;
      if (auto role = Handle(std::move(*packet))) return std::move(*role);
    }
    KillAll();
    return {};
  }

 private:
  struct Child {
    UniqueFd pidfd;
    pid_t process_group;
  };

  // A role in the child, nothing in the launcher.
  std::optional<Role> Handle(Packet packet) {
    if (!packet.json.is_object() || packet.json.value("type", Json()) != "fork") return {};
    const Json request = packet.json.value("request", Json());
    try {
      ForkRequest wanted = ParseFork(std::move(packet));
      const pid_t launcher = getpid();
      FlushOutput();
      const pid_t pid = fork();
      if (pid < 0) ThrowErrno("fork");
      if (pid == 0) {
        children_.clear();
        socket_.reset();
        return BecomeRank(std::move(wanted), launcher);
      }
      // Here and in the child: whoever comes first, the group exists when the executor is told.
      setpgid(pid, wanted.process_group);
      Child& child = children_[pid];
      child = {OpenPidfd(pid), wanted.process_group == 0 ? pid : wanted.process_group};
      SendPacket(socket_.get(), {{"type", "forked"}, {"request", wanted.request}, {"pid", pid}},
                 &child.pidfd);
    } catch (const Error& error) {
      SendPacket(socket_.get(),
                 {{"type", "forked"}, {"request", request}, {"error", error.what()}});
    }
    return {};
  }

  void ReapEnded() {
    for (auto child = children_.begin(); child != children_.end();) {
      int status = 0;
      if (waitpid(child->first, &status, WNOHANG) != child->first) {
        ++child;
        continue;
      }
      Json exited = {{"type", "exited"}, {"pid", child->first}};
      if (WIFSIGNALED(status)) {
        exited["signal"] = WTERMSIG(status);
      } else {
        exited["exit_code"] = WEXITSTATUS(status);
      }
      SendPacket(socket_.get(), exited);
      child = children_.erase(child);
    }
  }

  void KillAll() {
    for (const auto& [pid, child] : children_) kill(-child.process_group, SIGKILL);
    for (const auto& [pid, child] : children_) waitpid(pid, nullptr, 0);
    children_.clear();
  }

  UniqueFd socket_;
  std::map<pid_t, Child> children_;
};

}  // namespace

Role ServeLauncher(UniqueFd socket) {
  CheckSingleThreaded();
  FlushOutput();
  std::signal(SIGPIPE, SIG_IGN);
  return Launcher(std::move(socket)).Serve();
}

}  // namespace attune::trainable

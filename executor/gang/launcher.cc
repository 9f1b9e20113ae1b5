#include "executor/gang/launcher.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/gang/folders.h"

namespace attune::gang {
namespace {

using Json = nlohmann::json;

constexpr size_t kPacketBytesMax = 64 * 1024;
constexpr int kProtocol = 1;
constexpr int kDescriptorsMax = 4;
constexpr std::chrono::seconds kExitAfterClose{1};

// Sends one packet with two descriptors. False with errno set.
bool SendPacket(int socket, const std::string& packet, int channel, int log) {
  const std::array<int, 2> descriptors{channel, log};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  iovec data{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

// Receives one packet and its first descriptor. As recvmsg: 0 at the end, -1 with errno set.
ssize_t ReceivePacket(int socket, std::string& packet, UniqueFd& descriptor) {
  packet.resize(kPacketBytesMax);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  iovec data{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  packet.resize(std::max<ssize_t>(count, 0));
  if (count < 0) return count;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < descriptors; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      UniqueFd received(fd);
      if (!descriptor) descriptor = std::move(received);
    }
  }
  return count;
}

std::string ForkPacket(uint64_t id, const Launcher::ForkRequest& request) {
  Json environment = Json::object();
  for (const auto& [name, value] : request.environment) environment[name] = value;
  const Json packet{{"type", "fork"},
                    {"request", id},
                    {"argv", request.argv},
                    {"env", environment},
                    {"cwd", request.working_directory.string()},
                    {"process_group", request.process_group}};
  return packet.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Describe(const ExitStatus& status) {
  return status.signal != 0 ? "was killed by signal " + std::to_string(status.signal)
                            : "left with exit code " + std::to_string(status.exit_code);
}

}  // namespace

OrError<ProgramIdentity> Identify(const std::filesystem::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0) {
    return Error{"cannot look at " + program.string() + ": " + std::strerror(errno)};
  }
  return ProgramIdentity{
      .path = program,
      .device = status.st_dev,
      .inode = status.st_ino,
      .modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

Launcher::Launcher(Loop& loop, Guard& guard, ProgramIdentity identity, LaunchedProgram program,
                   const Options& options)
    : loop_(loop),
      guard_(guard),
      identity_(std::move(identity)),
      program_(std::move(program)),
      options_(options) {}

OrError<std::unique_ptr<Launcher>> Launcher::Start(Loop& loop, Guard& guard,
                                                   const ProgramIdentity& identity,
                                                   const LaunchedProgram& program,
                                                   const std::filesystem::path& log,
                                                   const Options& options) {
  std::unique_ptr<Launcher> launcher(new Launcher(loop, guard, identity, program, options));
  OrError<UniqueFd> output = OpenLog(log);
  if (!output.ok()) return Error{output.error()};
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{std::string("socketpair: ") + std::strerror(errno)};
  }
  launcher->socket_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  EnvironmentChanges environment = program.environment;
  environment.emplace_back("ATTUNE_LAUNCHER_FD", std::to_string(kInheritedFd));
  OrError<Child> child = Spawn({.program = program.path,
                                .argv = program.argv,
                                .environment = ProgramEnvironment(environment),
                                .working_directory = program.working_directory,
                                .output_fd = output.value().get(),
                                .inherited_fd = theirs.get(),
                                .announce_fd = guard.announce_fd()});
  if (!child.ok()) return Error{child.error()};

  Launcher* self = launcher.get();
  self->child_ = std::move(child.value());
  self->log_ = log;
  guard.Add(self->child_.pid);
  self->socket_watch_ =
      loop.Watch(self->socket_.get(), EPOLLIN, [self](uint32_t) { self->Receive(); });
  self->child_watch_ =
      loop.Watch(self->child_.pidfd.get(), EPOLLIN, [self](uint32_t) { self->OnExit(); });
  return launcher;
}

Launcher::~Launcher() {
  Die("was told to end");
  child_watch_.Reset();
  if (!reaped_ && child_.pidfd) {
    siginfo_t info{};
    waitid(P_PIDFD, static_cast<id_t>(child_.pidfd.get()), &info, WEXITED);
  }
}

bool Launcher::Fork(ForkRequest request) {
  const uint64_t id = next_request_++;
  std::string packet = ForkPacket(id, request);
  if (packet.size() > kPacketBytesMax) return false;
  if (!death_.empty()) {
    loop_.Post(std::move(request.unavailable));
    return true;
  }
  Pending& pending =
      pending_.emplace(id, Pending{.packet = std::move(packet), .request = std::move(request)})
          .first->second;
  if (!ready_) {
    pending.timeout = loop_.After(options_.ready_wait, [this, id] { GiveUp(id); });
  }
  SendPending();
  return true;
}

void Launcher::SendPending() {
  if (!ready_) return;
  bool blocked = false;
  for (auto& [id, pending] : pending_) {
    if (pending.sent) continue;
    ForkRequest& request = pending.request;
    if (!SendPacket(socket_.get(), pending.packet, request.channel.get(), request.log.get())) {
      blocked = true;  // or dead, which its pidfd will tell
      break;
    }
    pending.sent = true;
    pending.packet.clear();
    request.channel.Reset();
    request.log.Reset();
    pending.timeout = loop_.After(options_.fork_timeout, [this, each = id] { GiveUp(each); });
  }
  loop_.Change(socket_watch_, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Launcher::GiveUp(uint64_t request) {
  auto pending = pending_.extract(request);
  if (!pending) return;
  if (!pending.mapped().sent) return pending.mapped().request.unavailable();
  abandoned_.insert(request);
  pending.mapped().request.forked(
      Error{"the launcher of " + program_.path.string() + " (pid " + std::to_string(child_.pid) +
            ") did not answer a fork request for " + std::to_string(options_.fork_timeout.count()) +
            " ms; its log is " + log_.string()});
}

void Launcher::Receive() {
  while (death_.empty()) {
    std::string packet;
    UniqueFd descriptor;
    const ssize_t count = ReceivePacket(socket_.get(), packet, descriptor);
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      // Most likely it is ending, and its pidfd will soon tell how.
      socket_watch_.Reset();
      closed_ = loop_.After(kExitAfterClose, [this] { Die("closed its connection"); });
      return;
    }
    OnPacket(packet, std::move(descriptor));
  }
  if (death_.empty()) SendPending();
}

void Launcher::OnPacket(const std::string& packet, UniqueFd descriptor) {
  const Json json = Json::parse(packet, nullptr, /*allow_exceptions=*/false);
  const auto integer = [&json](const char* name) -> int64_t {
    const auto found = json.find(name);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const auto text = [&json](const char* name) -> std::string {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (!json.is_object()) return Die("sent a packet that is no JSON object");

  const std::string type = text("type");
  if (type == "ready") {
    if (integer("protocol") != kProtocol) {
      return Die("speaks launcher protocol " + std::to_string(integer("protocol")) +
                 ", this executor " + std::to_string(kProtocol) + "; build it with a matching SDK");
    }
    ready_ = true;
    spdlog::info("launcher of {} is ready (pid {})", program_.path.string(), child_.pid);
    SendPending();
  } else if (type == "forked") {
    OnForked(static_cast<uint64_t>(integer("request")), static_cast<pid_t>(integer("pid")),
             text("error"), std::move(descriptor));
  } else if (type == "exited") {
    auto child = children_.extract(static_cast<pid_t>(integer("pid")));
    if (!child) return;
    child.mapped()(ExitStatus{.exit_code = static_cast<int>(integer("exit_code")),
                              .signal = static_cast<int>(integer("signal"))});
  }
}

void Launcher::OnForked(uint64_t request, pid_t pid, const std::string& error, UniqueFd pidfd) {
  if (abandoned_.erase(request) > 0) {
    // Nobody waits for it any more. It has been told nothing yet, and started nothing.
    if (pidfd) syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    return;
  }
  auto answered = pending_.extract(request);
  if (!answered) return;
  ForkRequest& asked = answered.mapped().request;
  if (pid <= 0 || !error.empty()) {
    asked.forked(Error{"the launcher of " + program_.path.string() +
                       " could not fork: " + (error.empty() ? "no reason given" : error)});
    return;
  }
  if (!pidfd) {
    // Its parent may have reaped it already, but then `exited` follows and this is not looked at.
    pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
  children_.emplace(pid, std::move(asked.exited));
  asked.forked(Child{pid, std::move(pidfd)});
}

void Launcher::OnExit() {
  Receive();  // what it still had to say
  child_watch_.Reset();
  const auto status = Reap(child_.pidfd.get());
  reaped_ = true;
  Die(status ? Describe(*status) : "is gone");
}

void Launcher::Die(std::string why) {
  if (!death_.empty()) return;
  death_ = "the launcher of " + program_.path.string() + " (pid " + std::to_string(child_.pid) +
           ") " + why;
  socket_watch_.Reset();
  closed_.Reset();
  if (child_.pidfd) {
    // Its children follow by their parent-death signal.
    syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
    guard_.Remove(child_.pid);
  }
  socket_.Reset();
  spdlog::info("{}; its log is {}", death_, log_.string());
  for (auto& [id, pending] : std::exchange(pending_, {})) {
    if (pending.sent) {
      pending.request.forked(Error{death_});
    } else {
      pending.request.unavailable();
    }
  }
  for (auto& [pid, exited] : std::exchange(children_, {})) exited(std::nullopt);
}

}  // namespace attune::gang

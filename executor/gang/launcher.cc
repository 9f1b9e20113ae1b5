#include "executor/gang/launcher.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "channel/launcher.h"
#include "executor/gang/folders.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "logging/log.h"
#include "system/processes.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

constexpr std::chrono::seconds kExitAfterClose{1};

// Variables that move work from each forked rank to the launcher. Symbols are bound when libraries
// are loaded, not at the first call. malloc() uses huge pages for large blocks, so a fork copies
// one page table entry instead of 512. Only glibc knows these variables.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLauncherVariables{
    {{"LD_BIND_NOW", "1"}, {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}}};

bool HasVariable(const std::vector<std::string>& environment, std::string_view name) {
  return std::ranges::any_of(environment, [&](const std::string& entry) {
    return entry.starts_with(name) && entry[name.size()] == '=';
  });
}

std::string DescribeExit(const ExitStatus& status) {
  return status.signal != 0 ? "was killed by signal " + std::to_string(status.signal)
                            : "left with exit code " + std::to_string(status.exit_code);
}

Error UnavailableError(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

}  // namespace

Result<ProgramIdentity> IdentifyProgram(const std::filesystem::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0) {
    return SystemError("cannot read " + program.string(), errno);
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

Result<std::unique_ptr<Launcher>> Launcher::Start(
    Loop& loop, Guard& guard, std::unique_ptr<Cgroup> cgroup, const ProgramIdentity& identity,
    const LaunchedProgram& program, const std::filesystem::path& log, const Options& options) {
  std::unique_ptr<Launcher> launcher(new Launcher(loop, guard, identity, program, options));
  Result<UniqueFd> output = OpenLog(log);
  if (!output.ok()) return output.error();
  auto ends = SocketPair(SOCK_SEQPACKET);
  if (!ends.ok()) return ends.error();
  launcher->socket_ = std::move(ends.value().first);
  const UniqueFd theirs = std::move(ends.value().second);
  EnvironmentChanges environment = program.environment;
  environment.emplace_back("ATTUNE_LAUNCHER_FD", std::to_string(kInheritedFd));
  std::vector<std::string> whole_environment = ProgramEnvironment(environment);
  for (const auto& [name, value] : kLauncherVariables) {
    // A value that the user has set is also for the ranks.
    if (HasVariable(whole_environment, name)) continue;
    whole_environment.push_back(std::string(name) + "=" + std::string(value));
    launcher->rank_environment_changes_.emplace_back(name, std::nullopt);
  }
  Result<Child> child = Spawn({.program = program.path,
                               .argv = program.argv,
                               .environment = std::move(whole_environment),
                               .working_directory = program.working_directory,
                               .output_fd = output.value().get(),
                               .inherited_fd = theirs.get(),
                               .cgroup = cgroup ? cgroup->descriptor() : -1,
                               .announce_fd = guard.announce_fd()});
  if (!child.ok()) return child.error();
  WarnWithoutCgroup(*child);

  Launcher* self = launcher.get();
  self->cgroup_ = std::move(cgroup);
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
  if (cgroup_) cgroup_->Kill();  // processes that it started before it forked a rank
}

bool Launcher::Fork(ForkRequest request) {
  const uint64_t id = next_request_++;
  channel::Fork fork{.request = id,
                     .argv = request.argv,
                     .environment = rank_environment_changes_,
                     .working_directory = request.working_directory.string(),
                     .process_group = request.process_group};
  fork.environment.insert(fork.environment.end(), request.environment.begin(),
                          request.environment.end());
  std::string packet = ToPacket(fork);
  if (packet.size() > kPacketBytesMax) return false;
  if (!death_.empty()) {
    loop_.Post(std::move(request.unavailable));
    return true;
  }
  Pending& pending =
      pending_.emplace(id, Pending{.packet = std::move(packet), .request = std::move(request)})
          .first->second;
  if (!ready_) {
    pending.timeout = loop_.CallAfter(options_.ready_wait, [this, id] { GiveUp(id); });
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
    if (!SendPacket(socket_.get(), pending.packet, {request.channel.get(), request.log.get()},
                    MSG_DONTWAIT)) {
      blocked = true;  // or the launcher is dead; then its pidfd reports that
      break;
    }
    pending.sent = true;
    pending.packet.clear();
    request.channel.reset();
    request.log.reset();
    pending.timeout = loop_.CallAfter(options_.fork_timeout, [this, each = id] { GiveUp(each); });
  }
  loop_.Change(socket_watch_, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Launcher::GiveUp(uint64_t request) {
  auto pending = pending_.extract(request);
  if (!pending) return;
  if (!pending.mapped().sent) return pending.mapped().request.unavailable();
  abandoned_.insert(request);
  pending.mapped().request.forked(UnavailableError(
      "the launcher of " + program_.path.string() + " (pid " + std::to_string(child_.pid) +
      ") did not answer a fork request for " + std::to_string(options_.fork_timeout.count()) +
      " ms; its log is " + log_.string()));
}

void Launcher::Receive() {
  while (death_.empty()) {
    std::optional<Packet> packet = ReceivePacket(socket_.get(), MSG_DONTWAIT);
    if (!packet && errno == EAGAIN) break;
    if (!packet) {
      // It is probably exiting, and its pidfd will soon report how.
      socket_watch_.Reset();
      closed_ = loop_.CallAfter(kExitAfterClose, [this] { Die("closed its connection"); });
      return;
    }
    OnPacket(std::move(*packet));
  }
  if (death_.empty()) SendPending();
}

void Launcher::OnPacket(Packet packet) {
  Result<channel::FromLauncher> message = channel::ParseFromLauncher(packet.bytes);
  if (!message.ok()) return Die("sent " + message.error().message);
  if (const auto* ready = std::get_if<channel::Ready>(&message.value())) {
    if (ready->protocol != channel::kLauncherProtocol) {
      return Die("speaks launcher protocol " + std::to_string(ready->protocol) +
                 ", this executor " + std::to_string(channel::kLauncherProtocol) +
                 "; build it with a matching SDK");
    }
    ready_ = true;
    logging::Info("launcher of {} is ready (pid {})", program_.path.string(), child_.pid);
    SendPending();
  } else if (const auto* forked = std::get_if<channel::Forked>(&message.value())) {
    OnForked(*forked, packet.descriptors.empty() ? UniqueFd() : std::move(packet.descriptors[0]));
  } else if (const auto* exited = std::get_if<channel::Exited>(&message.value())) {
    auto child = children_.extract(exited->pid);
    if (!child) return;
    child.mapped()(ExitStatus{.exit_code = exited->exit_code, .signal = exited->signal});
  }
}

void Launcher::OnForked(const channel::Forked& forked, UniqueFd pidfd) {
  const auto& [request, pid, error] = forked;
  if (abandoned_.erase(request) > 0) {
    // The request has timed out. The rank has not got its start line yet, so it can be killed.
    if (pidfd) syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    return;
  }
  auto answered = pending_.extract(request);
  if (!answered) return;
  ForkRequest& asked = answered.mapped().request;
  if (pid <= 0 || !error.empty()) {
    asked.forked(
        UnavailableError("the launcher of " + program_.path.string() +
                         " could not fork: " + (error.empty() ? "no reason given" : error)));
    return;
  }
  if (!pidfd) {
    // Its parent may have reaped it already; then `exited` follows and this pidfd is not used.
    pidfd = OpenPidfd(pid);
  }
  children_.emplace(pid, std::move(asked.exited));
  asked.forked(Child{pid, std::move(pidfd)});
}

void Launcher::OnExit() {
  Receive();  // reads its last messages
  child_watch_.Reset();
  const auto status = Reap(child_.pidfd.get());
  reaped_ = true;
  Die(status ? DescribeExit(*status) : "is gone");
}

void Launcher::Die(std::string why) {
  if (!death_.empty()) return;
  death_ = "the launcher of " + program_.path.string() + " (pid " + std::to_string(child_.pid) +
           ") " + why;
  socket_watch_.Reset();
  closed_.Reset();
  if (child_.pidfd) {
    // The parent-death signal kills its children.
    syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
    guard_.Remove(child_.pid);
  }
  socket_.reset();
  logging::Info("{}; its log is {}", death_, log_.string());
  for (auto& [id, pending] : std::exchange(pending_, {})) {
    if (pending.sent) {
      pending.request.forked(UnavailableError(death_));
    } else {
      pending.request.unavailable();
    }
  }
  for (auto& [pid, exited] : std::exchange(children_, {})) exited(std::nullopt);
}

}  // namespace attune::gang

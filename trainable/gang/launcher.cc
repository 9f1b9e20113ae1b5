#include "trainable/gang/launcher.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>

#include "attune/error.h"
#include "channel/launcher.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"

namespace attune::inline sdk::trainable {
namespace {

// The whole argv of a `fork` that asks a program's own launcher for another launcher.
constexpr const char* kLauncherName = "launcher";

// What a launcher of the program's own has besides what an executor's has.
struct OwnLauncher {
  sigset_t worker_signals;
  int owner;  // a pidfd of the process that it serves
};

void FlushOutput() {  // before a fork, because both processes would print what is buffered
  std::cout.flush();
  std::fflush(nullptr);
}

// Kills and reaps all children, also those that this process, a subreaper, has adopted.
void EndAllChildren() {
  do {
    for (const pid_t pid : AllProcesses()) {
      if (ReadProcess(pid).parent == getpid()) kill(pid, SIGKILL);
    }
    // One at a time: it may have left others behind.
  } while (waitpid(-1, nullptr, 0) > 0 || errno != ECHILD);
}

// A `fork` packet, checked.
struct ForkRequest {
  channel::Fork fork;
  UniqueFd channel;  // of a worker, or the socket of a launcher
  UniqueFd log;      // only from an executor
  UniqueFd driver;   // only from the program itself
  bool is_for_launcher = false;
};

// The process that a launcher is.
class LauncherProcess {
 public:
  LauncherProcess(UniqueFd socket, std::optional<OwnLauncher> own)
      : socket_(std::move(socket)), own_(own) {}

  // Returns as ServeLauncher().
  std::optional<ForkedWorker> Serve() {
    if (!own_) Send(channel::Ready{.pid = getpid()});
    while (true) {
      std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}};
      polled.push_back({own_ ? own_->owner : -1, POLLIN, 0});
      for (const auto& [pid, child] : children_) polled.push_back({child.pidfd.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[1].revents != 0) break;  // others may hold its end of the socket
      ReapEnded();
      if (polled[0].revents == 0) continue;
      std::optional<Packet> packet = ReceivePacket(socket_.get(), 0);
      if (!packet && errno == EMSGSIZE) throw Error("launcher: a packet exceeds 64 KiB");
      if (!packet) break;
      if (auto worker = Handle(std::move(*packet))) return worker;
    }
    KillAll();
    return std::nullopt;
  }

 private:
  struct Child {
    UniqueFd pidfd;
    pid_t process_group;
    bool is_launcher;
  };

  template <typename Message>
  void Send(const Message& message, const std::vector<int>& descriptors = {}) {
    SendPacket(socket_.get(), ToPacket(message), descriptors, 0);
  }

  // Nothing for a packet of an unknown type.
  std::optional<ForkRequest> Parse(Packet packet) const {
    auto fork = OrThrow(channel::ParseFork(packet.bytes), "launcher: malformed `fork`");
    if (!fork) return std::nullopt;
    auto& descriptors = packet.descriptors;
    if (descriptors.size() != 2 && !(own_ && descriptors.size() == 1)) {
      throw Error(own_ ? "launcher: `fork` has to carry the channel, and no more than the driver"
                       : "launcher: `fork` has to carry two descriptors, the channel and the log");
    }
    ForkRequest request{.fork = std::move(*fork), .channel = std::move(descriptors[0])};
    if (descriptors.size() == 2) (own_ ? request.driver : request.log) = std::move(descriptors[1]);
    const std::vector<std::string>& argv = request.fork.argv;
    request.is_for_launcher = own_ && argv.size() == 1 && argv[0] == kLauncherName;
    return request;
  }

  // Returns a value in a forked worker, and nothing in the launcher and in a forked launcher.
  std::optional<ForkedWorker> Handle(Packet packet) {
    const std::uint64_t number = channel::RequestNumber(packet.bytes);
    try {
      std::optional<ForkRequest> request = Parse(std::move(packet));
      if (!request) return std::nullopt;
      const pid_t launcher = getpid();
      FlushOutput();
      const pid_t pid = fork();
      if (pid < 0) ThrowErrno("fork");
      if (pid == 0 && request->is_for_launcher) {
        BecomeLauncher(std::move(*request));
        return std::nullopt;
      }
      if (pid == 0) return BecomeWorker(std::move(*request), launcher);
      // Here and in the child: whichever is first, the group exists when the answer is sent.
      const pid_t group = request->fork.process_group;
      setpgid(pid, group);
      Child& child = children_[pid];
      child = {OpenPidfd(pid), group == 0 ? pid : group, request->is_for_launcher};
      if (!child.pidfd) ThrowErrno("pidfd_open of process " + std::to_string(pid));
      Send(channel::Forked{.request = number, .pid = pid}, {child.pidfd.get()});
    } catch (const Error& error) {
      Send(channel::Forked{.request = number, .error = error.what()});
    }
    return std::nullopt;
  }

  // In the forked child: goes on in Serve() with a socket and children of its own.
  void BecomeLauncher(ForkRequest request) {
    children_.clear();
    socket_ = std::move(request.channel);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // a fork does not inherit it
  }

  // In the forked child: does what the request says.
  ForkedWorker BecomeWorker(ForkRequest request, pid_t launcher) {
    children_.clear();
    socket_.reset();
    DieWithParent(launcher);
    channel::Fork& fork = request.fork;
    setpgid(0, fork.process_group);
    if (own_) sigprocmask(SIG_SETMASK, &own_->worker_signals, nullptr);
    if (request.log) {
      dup2(request.log.get(), STDOUT_FILENO);
      dup2(request.log.get(), STDERR_FILENO);
    }
    for (const auto& [name, value] : fork.environment) {
      if (value && name == channel::kCgroupVariable) {
        channel::JoinCgroup(*value);
      } else if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
    if (!fork.working_directory.empty() && chdir(fork.working_directory.c_str()) != 0) {
      std::cerr << "attune: " << fork.working_directory << ": " << std::strerror(errno)
                << std::endl;
      _exit(1);
    }
    if (!fork.argv.empty()) fork.argv.erase(fork.argv.begin());
    return {.channel = std::move(request.channel),
            .driver = std::move(request.driver),
            .args = std::move(fork.argv)};
  }

  void ReapEnded() {
    for (auto child = children_.begin(); child != children_.end();) {
      int status = 0;
      if (waitpid(child->first, &status, WNOHANG) != child->first) {
        ++child;
        continue;
      }
      channel::Exited exited{.pid = child->first};
      if (WIFSIGNALED(status)) {
        exited.signal = WTERMSIG(status);
      } else {
        exited.exit_code = WEXITSTATUS(status);
      }
      const bool is_launcher = child->second.is_launcher;
      child = children_.erase(child);
      if (own_ && children_.empty()) EndAllChildren();
      if (!is_launcher) Send(exited);  // a launcher's pidfd tells its end
    }
  }

  void KillAll() {
    for (const auto& [pid, child] : children_) {
      kill(-child.process_group, SIGKILL);
      kill(pid, SIGKILL);  // one that has left its group
    }
    for (const auto& [pid, child] : children_) waitpid(pid, nullptr, 0);
    children_.clear();
    if (own_) EndAllChildren();
  }

  UniqueFd socket_;
  std::optional<OwnLauncher> own_;
  std::map<pid_t, Child> children_;
};

// The forked child that is a launcher. Returns in its workers only.
ForkedWorker ServeOwnLauncher(UniqueFd socket, const sigset_t& worker_signals,
                              const UniqueFd& owner) {
  // Out of the terminal's reach: only the owner ends a gang.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // If the program ignores it, the ends of children are lost.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    auto worker =
        LauncherProcess(std::move(socket), OwnLauncher{worker_signals, owner.get()}).Serve();
    if (worker) return std::move(*worker);
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
  }
  _exit(0);  // without the rest of the program
}

}  // namespace

void CheckSingleThreaded(const std::string& before) {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  if (const auto threads = std::distance(begin(tasks), end(tasks)); threads != 1) {
    throw Error("launcher: the program has " + std::to_string(threads) + " threads before " +
                before +
                "; it must not start threads, or use tensors, in static initialisers or ahead of "
                "it");
  }
}

std::optional<ForkedWorker> ServeLauncher(UniqueFd socket) {
  CheckSingleThreaded("attune::Main()");
  FlushOutput();
  std::signal(SIGPIPE, SIG_IGN);
  return LauncherProcess(std::move(socket), std::nullopt).Serve();
}

std::variant<Launcher, ForkedWorker> Launcher::Fork(const sigset_t& worker_signals) {
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const UniqueFd self = OpenPidfd(getpid());
  if (!self) ThrowErrno("pidfd_open");
  FlushOutput();
  const pid_t pid = fork();
  if (pid < 0) ThrowErrno("fork");
  if (pid == 0) {
    ours.reset();
    return ServeOwnLauncher(std::move(theirs), worker_signals, self);
  }
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) ThrowErrno("pidfd_open of process " + std::to_string(pid));
  return Launcher(pid, std::move(pidfd), std::move(ours));
}

Launcher::~Launcher() {
  if (!pidfd_) return;
  socket_.reset();
  Poll(pidfd_, POLLIN, Clock::now() + kPatience);
  waitpid(pid_, nullptr, WNOHANG);  // no child of this process if ForkLauncher() made it
}

Launcher Launcher::ForkLauncher() {
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const std::string request = ToPacket(channel::Fork{.argv = {kLauncherName}});
  if (!SendPacket(socket_.get(), request, {theirs.get()}, 0)) ThrowErrno("launcher");
  auto answer = ReceivePacket(socket_.get(), 0);
  if (!answer) throw Error("launcher: the process that attune::Init() has forked is gone");
  const auto message = OrThrow(channel::ParseFromLauncher(answer->bytes), "launcher");
  const auto* forked = std::get_if<channel::Forked>(&message);
  if (forked == nullptr) throw Error("launcher: expected `forked`, got another message");
  if (answer->descriptors.empty()) throw Error("launcher: cannot be forked: " + forked->error);
  return Launcher(forked->pid, std::move(answer->descriptors[0]), std::move(ours));
}

}  // namespace attune::inline sdk::trainable

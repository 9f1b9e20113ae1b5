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
#include "trainable/base/memory.h"

namespace attune::inline sdk::trainable {
namespace {

// The complete argv of a `fork` that requests another launcher from the program's launcher.
constexpr const char* kLauncherName = "launcher";

// Additional data of a launcher that the program started itself, not an executor.
struct ProgramLauncher {
  sigset_t worker_signals;
  int owner;  // a pidfd of the process that owns the launcher
};

// Call it before a fork. Otherwise both processes would print the buffered text.
void FlushOutput() {
  std::cout.flush();
  std::fflush(nullptr);
}

// Kills and reaps all children, including those that this subreaper process has adopted.
void EndAllChildren() {
  do {
    for (const pid_t pid : AllProcesses()) {
      if (ReadProcess(pid).parent == getpid()) kill(pid, SIGKILL);
    }
    // Reaps one at a time, because an ended child may leave orphans.
  } while (waitpid(-1, nullptr, 0) > 0 || errno != ECHILD);
}

// A valid `fork` packet.
struct ForkRequest {
  channel::Fork fork;
  UniqueFd channel;  // the channel of a worker, or the socket of a launcher
  UniqueFd log;      // only from an executor
  UniqueFd driver;   // only from the program itself
  bool is_for_launcher = false;
};

// The main loop of a launcher process.
class LauncherProcess {
 public:
  LauncherProcess(UniqueFd socket, std::optional<ProgramLauncher> program)
      : socket_(std::move(socket)), program_launcher_(program) {}

  // See ServeLauncher() for the result.
  std::optional<ForkedWorker> Serve() {
    KeepFreedMemory();
    MakeArenasOfRanks();
    if (!program_launcher_) Send(channel::Ready{.pid = getpid()});
    while (true) {
      std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}};
      polled.push_back({program_launcher_ ? program_launcher_->owner : -1, POLLIN, 0});
      for (const auto& [pid, child] : children_) polled.push_back({child.pidfd.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[1].revents != 0) break;  // other processes may still hold its end of the socket
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

  // Returns nullopt for a packet of an unknown type.
  std::optional<ForkRequest> Parse(Packet packet) const {
    auto fork = OrThrow(channel::ParseFork(packet.bytes), "launcher: malformed `fork`");
    if (!fork) return std::nullopt;
    auto& descriptors = packet.descriptors;
    if (descriptors.size() != 2 && !(program_launcher_ && descriptors.size() == 1)) {
      throw Error(program_launcher_
                      ? "launcher: `fork` must carry the channel, and optionally the driver"
                      : "launcher: `fork` must carry two descriptors, the channel and the log");
    }
    ForkRequest request{.fork = std::move(*fork), .channel = std::move(descriptors[0])};
    if (descriptors.size() == 2)
      (program_launcher_ ? request.driver : request.log) = std::move(descriptors[1]);
    const std::vector<std::string>& argv = request.fork.argv;
    request.is_for_launcher = program_launcher_ && argv.size() == 1 && argv[0] == kLauncherName;
    return request;
  }

  // Returns a value in a forked worker, and nullopt in the launcher and in a forked launcher.
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
      // The parent and the child both set the group, so that it exists when the answer is sent.
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

  // Runs in the forked child, which continues in Serve() with a new socket and no children.
  void BecomeLauncher(ForkRequest request) {
    children_.clear();
    socket_ = std::move(request.channel);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // a fork does not inherit it
  }

  // Runs in the forked child: applies the request.
  ForkedWorker BecomeWorker(ForkRequest request, pid_t launcher) {
    children_.clear();
    socket_.reset();
    DieWithParent(launcher);
    channel::Fork& fork = request.fork;
    setpgid(0, fork.process_group);
    if (program_launcher_) sigprocmask(SIG_SETMASK, &program_launcher_->worker_signals, nullptr);
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
      if (program_launcher_ && children_.empty()) EndAllChildren();
      if (!is_launcher) Send(exited);  // a forked launcher's end is visible through its pidfd
    }
  }

  void KillAll() {
    for (const auto& [pid, child] : children_) {
      kill(-child.process_group, SIGKILL);
      kill(pid, SIGKILL);  // it may have left its group
    }
    for (const auto& [pid, child] : children_) waitpid(pid, nullptr, 0);
    children_.clear();
    if (program_launcher_) EndAllChildren();
  }

  UniqueFd socket_;
  std::optional<ProgramLauncher> program_launcher_;
  std::map<pid_t, Child> children_;
};

// Runs the launcher in the forked child. Returns only in its workers.
ForkedWorker ServeProgramLauncher(UniqueFd socket, const sigset_t& worker_signals,
                                  const UniqueFd& owner) {
  // Leaves the terminal's process group, because only the owner may end a gang.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // If the program ignores SIGCHLD, exit codes of children are lost.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    auto worker =
        LauncherProcess(std::move(socket), ProgramLauncher{worker_signals, owner.get()}).Serve();
    if (worker) return std::move(*worker);
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
  }
  _exit(0);  // skips the rest of the program
}

}  // namespace

void CheckSingleThreaded(const std::string& before) {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  if (const auto threads = std::distance(begin(tasks), end(tasks)); threads != 1) {
    throw Error("launcher: the program has " + std::to_string(threads) + " threads before " +
                before +
                "; it must not start threads or use tensors before this call, also not in static "
                "initialisers");
  }
}

std::optional<ForkedWorker> ServeLauncher(UniqueFd socket) {
  CheckSingleThreaded("attune::Main()");
  FlushOutput();
  std::signal(SIGPIPE, SIG_IGN);
  return LauncherProcess(std::move(socket), std::nullopt).Serve();
}

std::variant<Launcher, ForkedWorker> Launcher::Fork(const sigset_t& worker_signals) {
  auto [owner_end, launcher_end] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const UniqueFd this_process = OpenPidfd(getpid());
  if (!this_process) ThrowErrno("pidfd_open");
  FlushOutput();
  const pid_t pid = fork();
  if (pid < 0) ThrowErrno("fork");
  if (pid == 0) {
    owner_end.reset();
    return ServeProgramLauncher(std::move(launcher_end), worker_signals, this_process);
  }
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) ThrowErrno("pidfd_open of process " + std::to_string(pid));
  return Launcher(pid, std::move(pidfd), std::move(owner_end));
}

Launcher::~Launcher() {
  if (!pidfd_) return;
  socket_.reset();
  Poll(pidfd_, POLLIN, Clock::now() + kPatience);
  waitpid(pid_, nullptr, WNOHANG);  // not a child of this process if ForkLauncher() created it
}

Launcher Launcher::ForkLauncher() {
  auto [owner_end, launcher_end] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const std::string request = ToPacket(channel::Fork{.argv = {kLauncherName}});
  if (!SendPacket(socket_.get(), request, {launcher_end.get()}, 0)) ThrowErrno("launcher");
  auto answer = ReceivePacket(socket_.get(), 0);
  if (!answer) throw Error("launcher: the process that attune::Init() forked has ended");
  const auto message = OrThrow(channel::ParseFromLauncher(answer->bytes), "launcher");
  const auto* forked = std::get_if<channel::Forked>(&message);
  if (forked == nullptr) throw Error("launcher: expected `forked`, got another message");
  if (answer->descriptors.empty()) throw Error("launcher: cannot be forked: " + forked->error);
  return Launcher(forked->pid, std::move(answer->descriptors[0]), std::move(owner_end));
}

}  // namespace attune::inline sdk::trainable

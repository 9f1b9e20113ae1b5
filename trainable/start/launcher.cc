#include "trainable/start/launcher.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "attune/error.h"
#include "channel/launcher.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

// Of ranks that a person's own program forks.
struct Local {
  sigset_t rank_signals;
  int owner;  // a pidfd: whoever it was forked for
};

// Kills and reaps all children, those included that come to this process, the subreaper, because
// their parents are gone.
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
  UniqueFd channel;
  UniqueFd log;     // none where ranks print where this process does
  UniqueFd driver;  // only there
};

class Launcher {
 public:
  Launcher(UniqueFd socket, std::optional<Local> local)
      : socket_(std::move(socket)), local_(local) {}

  Role Serve() {
    Send(channel::Ready{.pid = getpid()});
    while (true) {
      std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}};
      polled.push_back({local_ ? local_->owner : -1, POLLIN, 0});
      for (const auto& [pid, child] : children_) polled.push_back({child.pidfd.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[1].revents != 0) break;  // others may hold its end of the socket
      ReapEnded();
      if (polled[0].revents == 0) continue;
      std::optional<Packet> packet = ReceivePacket(socket_.get(), 0);
      if (!packet && errno == EMSGSIZE) throw Error("launcher: a packet exceeds 64 KiB");
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

  template <typename Message>
  void Send(const Message& message, const std::vector<int>& descriptors = {}) {
    SendPacket(socket_.get(), ToPacket(message), descriptors, 0);
  }

  // Nothing for a packet of an unknown type.
  std::optional<ForkRequest> Parse(Packet packet) const {
    auto fork = OrThrow(channel::ParseFork(packet.bytes), "launcher: malformed `fork`");
    if (!fork) return std::nullopt;
    auto& descriptors = packet.descriptors;
    if (descriptors.size() != 2 && !(local_ && descriptors.size() == 1)) {
      throw Error(local_
                      ? "launcher: `fork` has to carry the channel, and no more than the driver"
                      : "launcher: `fork` has to carry two descriptors, the channel and the log");
    }
    ForkRequest request{.fork = std::move(*fork), .channel = std::move(descriptors[0])};
    if (descriptors.size() == 2) {
      (local_ ? request.driver : request.log) = std::move(descriptors[1]);
    }
    return request;
  }

  // A role in the child, nothing in the launcher.
  std::optional<Role> Handle(Packet packet) {
    const std::uint64_t number = channel::RequestOf(packet.bytes);
    try {
      std::optional<ForkRequest> request = Parse(std::move(packet));
      if (!request) return std::nullopt;
      const pid_t launcher = getpid();
      FlushOutput();
      const pid_t pid = fork();
      if (pid < 0) ThrowErrno("fork");
      if (pid == 0) return BecomeRank(std::move(*request), launcher);
      // Here and in the child: whoever comes first, the group exists when the executor is told.
      const pid_t group = request->fork.process_group;
      setpgid(pid, group);
      Child& child = children_[pid];
      child = {OpenPidfd(pid), group == 0 ? pid : group};
      if (!child.pidfd) ThrowErrno("pidfd_open of process " + std::to_string(pid));
      Send(channel::Forked{.request = number, .pid = pid}, {child.pidfd.get()});
    } catch (const Error& error) {
      Send(channel::Forked{.request = number, .error = error.what()});
    }
    return std::nullopt;
  }

  // Turns the freshly forked child into what the request describes.
  Role BecomeRank(ForkRequest request, pid_t launcher) {
    children_.clear();
    socket_.reset();
    DieWithParent(launcher);
    channel::Fork& fork = request.fork;
    setpgid(0, fork.process_group);
    if (local_) sigprocmask(SIG_SETMASK, &local_->rank_signals, nullptr);
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
      child = children_.erase(child);
      if (local_ && children_.empty()) EndAllChildren();
      Send(exited);
    }
  }

  void KillAll() {
    for (const auto& [pid, child] : children_) {
      kill(-child.process_group, SIGKILL);
      kill(pid, SIGKILL);  // one that has left its group
    }
    for (const auto& [pid, child] : children_) waitpid(pid, nullptr, 0);
    children_.clear();
    if (local_) EndAllChildren();
  }

  UniqueFd socket_;
  std::optional<Local> local_;
  std::map<pid_t, Child> children_;
};

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

void FlushOutput() {
  std::cout.flush();
  std::fflush(nullptr);
}

Role ServeLauncher(UniqueFd socket) {
  CheckSingleThreaded("attune::Main()");
  FlushOutput();
  std::signal(SIGPIPE, SIG_IGN);
  return Launcher(std::move(socket), std::nullopt).Serve();
}

Role ServeLocalLauncher(UniqueFd socket, const sigset_t& rank_signals, const UniqueFd& owner) {
  // Out of reach of the terminal: the end of a gang is its executor's business.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Where whoever started the program ignores it, ends of children would be lost.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    Role role = Launcher(std::move(socket), Local{rank_signals, owner.get()}).Serve();
    if (role.channel) return role;
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
  }
  _exit(0);  // what follows Main() in the program is not this process's to do
}

}  // namespace attune::inline sdk::trainable

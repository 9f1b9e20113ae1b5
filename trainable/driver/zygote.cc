#include "trainable/driver/zygote.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "attune/error.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

// A request carries the launcher's end of its socket and nothing else of interest; the answer its
// number and pidfd, or why there is none.
constexpr const char* kRequest = "fork";

// Returns in ranks only.
Role Serve(UniqueFd socket, const sigset_t& rank_signals, const UniqueFd& driver) {
  // Out of reach of the terminal: its signals are for the driver, whose end this process sees.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  std::signal(SIGCHLD, SIG_IGN);  // launchers are reaped by themselves
  // The driver's end of the socket may be held by others, which it has forked.
  pollfd polled[] = {{socket.get(), POLLIN, 0}, {driver.get(), POLLIN, 0}};
  while (true) {
    if (poll(polled, 2, -1) < 0) continue;
    if (polled[1].revents != 0) break;
    auto request = ReceivePacket(socket.get(), 0);
    if (!request) break;
    const pid_t pid = request->descriptors.empty() ? -1 : fork();
    if (pid == 0) {
      socket.reset();
      return ServeLocalLauncher(std::move(request->descriptors[0]), rank_signals, driver);
    }
    const UniqueFd pidfd = pid > 0 ? OpenPidfd(pid) : UniqueFd();
    if (pidfd) {
      SendPacket(socket.get(), std::to_string(pid), {pidfd.get()}, 0);
    } else {
      SendPacket(socket.get(), std::strerror(errno), {}, 0);
    }
  }
  _exit(0);
}

}  // namespace

std::variant<Zygote, Role> Zygote::Fork(const sigset_t& rank_signals) {
  CheckSingleThreaded("attune::Init()");
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  const UniqueFd self = OpenPidfd(getpid());
  if (!self) ThrowErrno("pidfd_open");
  FlushOutput();
  const pid_t pid = fork();
  if (pid < 0) ThrowErrno("fork");
  if (pid == 0) {
    ours.reset();
    return Serve(std::move(theirs), rank_signals, self);
  }
  return Zygote(std::move(ours));
}

LocalLauncher Zygote::ForkLauncher() {
  auto [ours, theirs] = OrThrow(SocketPair(SOCK_SEQPACKET), "launcher");
  if (!SendPacket(socket_.get(), kRequest, {theirs.get()}, 0)) ThrowErrno("launcher");
  auto answer = ReceivePacket(socket_.get(), 0);
  if (!answer) throw Error("launcher: the process that attune::Init() has forked is gone");
  if (answer->descriptors.empty()) throw Error("launcher: cannot be forked: " + answer->bytes);
  return LocalLauncher(std::stoi(answer->bytes), std::move(answer->descriptors[0]),
                       std::move(ours));
}

}  // namespace attune::inline sdk::trainable

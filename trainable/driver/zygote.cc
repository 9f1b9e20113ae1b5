#include "trainable/driver/zygote.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "attune/error.h"
#include "channel/sockets.h"

namespace attune::trainable {
namespace {

// A request carries the launcher's end of its socket and nothing else of interest; the answer its
// number and pidfd, or why there is none.
constexpr const char* kRequest = "fork";

// Returns in ranks only.
Role Serve(UniqueFd socket, const sigset_t& rank_signals) {
  // Out of reach of the terminal: its signals are for the driver, whose end this process sees.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  std::signal(SIGCHLD, SIG_IGN);  // launchers are reaped by themselves
  while (auto request = channel::ReceivePacket(socket.get(), 0)) {
    const pid_t pid = request->descriptors.empty() ? -1 : fork();
    if (pid == 0) {
      socket.reset();
      return ServeLocalLauncher(std::move(request->descriptors[0]), rank_signals);
    }
    const UniqueFd pidfd = pid > 0 ? channel::OpenPidfd(pid) : UniqueFd();
    if (pidfd) {
      channel::SendPacket(socket.get(), std::to_string(pid), {pidfd.get()}, 0);
    } else {
      channel::SendPacket(socket.get(), std::strerror(errno), {}, 0);
    }
  }
  _exit(0);
}

}  // namespace

std::variant<Zygote, Role> Zygote::Fork(const sigset_t& rank_signals) {
  CheckSingleThreaded("attune::Init()");
  auto [ours, theirs] = OrThrow(channel::SocketPair(SOCK_SEQPACKET), "launcher");
  FlushOutput();
  const pid_t pid = fork();
  if (pid < 0) ThrowErrno("fork");
  if (pid == 0) {
    ours.reset();
    return Serve(std::move(theirs), rank_signals);
  }
  return Zygote(std::move(ours));
}

LocalLauncher Zygote::ForkLauncher() {
  auto [ours, theirs] = OrThrow(channel::SocketPair(SOCK_SEQPACKET), "launcher");
  if (!channel::SendPacket(socket_.get(), kRequest, {theirs.get()}, 0)) ThrowErrno("launcher");
  auto answer = channel::ReceivePacket(socket_.get(), 0);
  if (!answer) throw Error("launcher: the process that attune::Init() has forked is gone");
  if (answer->descriptors.empty()) throw Error("launcher: cannot be forked: " + answer->bytes);
  return LocalLauncher(std::stoi(answer->bytes), std::move(answer->descriptors[0]),
                       std::move(ours));
}

}  // namespace attune::trainable

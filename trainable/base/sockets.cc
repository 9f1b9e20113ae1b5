#include "trainable/base/sockets.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "attune/error.h"

namespace attune::trainable {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

void ThrowErrno(const std::string& what) { throw Error(what + ": " + std::strerror(errno)); }

std::pair<UniqueFd, UniqueFd> StreamSocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) ThrowErrno("socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd OpenPidfd(pid_t pid) {
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) ThrowErrno("pidfd_open of process " + std::to_string(pid));
  return UniqueFd(static_cast<int>(fd));
}

void DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the call above
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written >= 0) {
      bytes.remove_prefix(written);
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool LineBuffer::ReadFrom(int fd) {
  std::array<char, 16384> chunk;
  const ssize_t got = read(fd, chunk.data(), chunk.size());
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  buffer_.append(chunk.data(), got);
  if (buffer_.find('\n', scanned_) == std::string::npos) {
    scanned_ = buffer_.size();
    if (buffer_.size() > kMaxLineBytes) {
      throw Error("channel: a line is longer than 1 MiB; it begins: " + buffer_.substr(0, 80));
    }
  }
  return true;
}

std::optional<std::string> LineBuffer::Next() {
  const std::size_t end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  scanned_ = 0;
  return line;
}

}  // namespace attune::trainable

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace attune::trainable {

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// "what: strerror(errno)", as an exception.
[[noreturn]] void ThrowErrno(const std::string& what);

// A connected pair of Unix stream sockets, close-on-exec.
std::pair<UniqueFd, UniqueFd> StreamSocketPair();

// A descriptor that polls readable once the child has ended.
// REQUIRES: `pid` is a child that has not been waited for.
UniqueFd OpenPidfd(pid_t pid);

// In a freshly forked child: SIGKILL when the parent dies, also when it already has.
void DieWithParent(pid_t parent);

// Writes all of it, whatever the descriptor's mode; false when the peer is gone.
bool WriteAll(int fd, std::string_view bytes);

// Splits a byte stream into lines.
class LineBuffer {
 public:
  // Longest line of the worker channel, its newline not counted.
  static constexpr std::size_t kMaxLineBytes = 1 << 20;

  // Reads once from `fd`; false at its end. A descriptor without data counts as more to come.
  // Throws attune::Error when a line grows longer than kMaxLineBytes.
  bool ReadFrom(int fd);

  // The next complete line without its newline, or nothing yet.
  std::optional<std::string> Next();

 private:
  std::string buffer_;
  std::size_t scanned_ = 0;  // no newline before here
};

}  // namespace attune::trainable

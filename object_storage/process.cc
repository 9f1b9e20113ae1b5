#include "object_storage/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/result.h"
#include "system/sockets.h"
#include "system/system_error.h"

namespace attune::object_storage {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kPipeBytes = 1 << 20;  // the default of 64 KiB costs 16 times as many calls

Error Stopped() { return {ErrorCode::kUnavailable, "rclone was stopped"}; }

// Reads what is available, at most `bytes_max` bytes. Closes `from` at its end. Returns the number
// of bytes.
size_t ReadAvailable(UniqueFd& from, char* to, size_t bytes_max) {
  const ssize_t count = read(from.get(), to, bytes_max);
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) from.reset();
  return static_cast<size_t>(std::max<ssize_t>(count, 0));
}

}  // namespace

Result<Process> Process::Start(const std::filesystem::path& program,
                               const std::vector<std::string>& arguments,
                               const Environment& environment, int inherited_fd) {
  auto out = MakePipe();
  if (!out.ok()) return out.error();
  auto err = MakePipe();
  if (!err.ok()) return err.error();
  Process process;
  process.wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!process.wake_) return SystemError("cannot start rclone", errno);
  fcntl(out->first.get(), F_SETPIPE_SZ, kPipeBytes);  // an error leaves the default
  // A program that rclone started for credentials may keep this pipe open.
  fcntl(err->first.get(), F_SETFL, O_NONBLOCK);

  std::vector<std::string> argv{program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Result<Child> child = Spawn({.program = program,
                               .argv = std::move(argv),
                               .environment = environment,
                               .output_fd = out->second.get(),
                               .error_fd = err->second.get(),
                               .inherited_fd = inherited_fd});
  if (!child.ok()) return child.error();
  process.child_ = *std::move(child);
  process.out_ = std::move(out->first);
  process.err_ = std::move(err->first);
  return process;
}

Process::Process(Process&& other) noexcept
    : child_{std::exchange(other.child_.pid, 0), std::move(other.child_.pidfd)},
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      wake_(std::move(other.wake_)),
      log_(std::move(other.log_)),
      exit_code_(other.exit_code_) {}

Process::~Process() {
  if (child_.pid == 0) return;
  kill(child_.pid, SIGKILL);
  Reap();
}

Result<size_t> Process::ReadSome(char* to, size_t bytes_max, const std::stop_token& stop) {
  while (out_) {
    if (WaitForEvent(stop) == Event::kStop) return Stopped();
    const size_t count = ReadAvailable(out_, to, bytes_max);
    if (count > 0) return count;
  }
  return size_t{0};
}

Result<std::string> Process::ReadAll(size_t bytes_max, const std::stop_token& stop) {
  std::string text;
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    const Result<size_t> count = ReadSome(buffer.data(), buffer.size(), stop);
    if (!count.ok()) return count.error();
    if (*count == 0) return text;
    if (*count > bytes_max - text.size())
      return Invalid("the output is longer than " + std::to_string(bytes_max) + " bytes");
    text.append(buffer.data(), *count);
  }
}

Result<ProcessEnd> Process::Wait(const std::stop_token& stop) {
  out_.reset();
  while (child_.pid != 0) {
    const Event event = WaitForEvent(stop);
    if (event == Event::kStop) return Stopped();
    if (event == Event::kEnd) Reap();
  }
  while (ReadLog() > 0) {
  }
  return ProcessEnd{exit_code_, log_};
}

// Waits until the output can be read or has ended, the process has ended, or `stop` was requested.
// Reads the log meanwhile. Reports the end of the process only after the end of its output.
Process::Event Process::WaitForEvent(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { eventfd_write(wake_.get(), 1); });
  for (;;) {
    // poll() ignores negative descriptors.
    std::array<pollfd, 4> polled{pollfd{wake_.get(), POLLIN, 0}, pollfd{out_.get(), POLLIN, 0},
                                 pollfd{err_.get(), POLLIN, 0},
                                 pollfd{out_ ? -1 : child_.pidfd.get(), POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) {
      End();
      return Event::kStop;
    }
    if (polled[2].revents != 0) ReadLog();
    if (polled[1].revents != 0) return Event::kOutput;
    if (polled[3].revents != 0) return Event::kEnd;
  }
}

size_t Process::ReadLog() {
  std::array<char, 4096> buffer;
  const size_t count = err_ ? ReadAvailable(err_, buffer.data(), buffer.size()) : 0;
  log_.append(buffer.data(), count);
  if (log_.size() > kLogBytesMax) log_.erase(0, log_.size() - kLogBytesMax);
  return count;
}

void Process::End() {
  kill(child_.pid, SIGTERM);
  out_.reset();
  const auto deadline = std::chrono::steady_clock::now() + kStopGrace;
  std::array<pollfd, 2> polled{pollfd{child_.pidfd.get(), POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  while (polled[0].revents == 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    polled[1].fd = err_.get();
    if (poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0) continue;
    if (polled[1].revents != 0) ReadLog();  // a full pipe would block it
  }
  kill(child_.pid, SIGKILL);
  Reap();
}

// If another part of this program has reaped the process, it counts as failed, because its exit
// code is unknown.
void Process::Reap() {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(child_.pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  child_.pid = 0;
  if (reaped < 0) {
    exit_code_ = 1;
  } else {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

}  // namespace attune::object_storage

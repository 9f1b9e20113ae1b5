#include "slurm/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/result.h"

namespace attune::slurm {
namespace {

using Clock = std::chrono::steady_clock;

std::string FindInPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = path.substr(begin, end - begin) + "/" + name;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
    begin = end + 1;
  }
  return "";
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};  // to read, to write

  Pipe() { ATTUNE_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void CloseRead() { Close(ends[0]); }
  void CloseWrite() { Close(ends[1]); }
  static void Close(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

// In the child: nothing but system calls, since other threads may have held any lock.
[[noreturn]] void Become(const char* file, char* const* argv, int out, int err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  setpgid(0, 0);  // Ctrl-C is for who runs it
  execv(file, argv);
  _exit(127);
}

// Reads both until both are closed; false: not by the deadline.
bool ReadBoth(Pipe& out, Pipe& err, Ran& ran, Clock::time_point deadline) {
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    std::array<pollfd, 2> polled{pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    const int wait_ms = static_cast<int>(std::min<int64_t>(left.count(), 3'600'000));
    if (poll(polled.data(), polled.size(), wait_ms) <= 0) continue;
    const auto take = [](const pollfd& from, Pipe& pipe, std::string& text) {
      if (from.fd < 0 || from.revents == 0) return;
      std::array<char, 65536> bytes;
      const ssize_t count = read(from.fd, bytes.data(), bytes.size());
      if (count > 0) text.append(bytes.data(), static_cast<size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) pipe.CloseRead();
    };
    take(polled[0], out, ran.out);
    take(polled[1], err, ran.err);
  }
  return true;
}

}  // namespace

Result<Ran> SystemCommands::Run(const std::vector<std::string>& argv) {
  const std::string file = FindInPath(argv.at(0));
  if (file.empty())
    return Error{ErrorCode::kNotFound, "there is no `" + argv[0] + "` in PATH on this machine"};
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  Pipe out;
  Pipe err;
  const Result<pid_t> child = Start(file, words.data(), out.ends[1], err.ends[1]);
  if (!child.ok()) return child.error();
  out.CloseWrite();
  err.CloseWrite();

  Ran ran;
  const bool ended = ReadBoth(out, err, ran, Clock::now() + patience_);
  if (!ended) kill(*child, SIGKILL);
  ran.exit_code = Await(*child);
  if (ended) return ran;
  return Error{ErrorCode::kUnavailable, "`" + argv[0] + "` did not end within " +
                                            std::to_string(patience_.count() / 1000) + " s"};
}

Result<pid_t> SystemCommands::Start(const std::string& file, char* const* argv, int out, int err) {
  const std::lock_guard lock(mutex_);
  if (ending_) return Error{ErrorCode::kUnavailable, "it was told to end"};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    return Error{ErrorCode::kUnavailable, "cannot run " + file + ": " + std::strerror(errno)};
  if (child == 0) Become(file.c_str(), argv, out, err, parent);
  running_ = child;
  return child;
}

int SystemCommands::Await(pid_t child) {
  siginfo_t ended{};  // not reaped, so that nobody signals another process of its number
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  running_ = 0;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void SystemCommands::End() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  if (running_ != 0) kill(running_, SIGTERM);
}

}  // namespace attune::slurm

#include "system/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/result.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

Result<std::filesystem::path> FindTool(const std::string& name) {
  const char* const path = std::getenv("PATH");
  auto found = FindProgram(name, {}, path == nullptr ? "/usr/bin:/bin" : path);
  if (found.ok()) return found;
  return Error{ErrorCode::kNotFound, "there is no `" + name + "` in PATH on this machine"};
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  return environment;
}

// Reads the available bytes; closes `from` at its end.
void Read(UniqueFd& from, std::string& text) {
  std::array<char, 65536> bytes;
  const ssize_t count = read(from.get(), bytes.data(), bytes.size());
  if (count > 0) text.append(bytes.data(), static_cast<size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR)) from.reset();
}

// Reads both until both are closed. Otherwise returns what the program did wrong, as the end of a
// message: it took longer than the timeout or wrote too much.
std::string ReadBoth(UniqueFd& out, UniqueFd& err, CommandResult& result,
                     const CommandOptions& options) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  while (out || err) {
    std::array<pollfd, 2> polled{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return "did not end within " + std::to_string(options.timeout.count() / 1000) + " s";
    const int wait_ms = static_cast<int>(std::min<int64_t>(left.count(), 3'600'000));
    if (poll(polled.data(), polled.size(), wait_ms) <= 0) continue;
    if (polled[0].revents != 0) Read(out, result.out);
    if (polled[1].revents != 0) Read(err, result.err);
    if (result.out.size() + result.err.size() > options.output_bytes_max)
      return "wrote more than " + std::to_string(options.output_bytes_max) + " bytes";
  }
  return "";
}

}  // namespace

Result<CommandResult> SystemCommands::Run(const std::vector<std::string>& argv) {
  const Result<std::filesystem::path> file = FindTool(argv.at(0));
  if (!file.ok()) return file.error();
  auto out = MakePipe();
  if (!out.ok()) return out.error();
  auto err = MakePipe();
  if (!err.ok()) return err.error();
  const Result<pid_t> child =
      Start({.program = *file,
             .argv = argv,
             .environment = options_.environment ? *options_.environment : CurrentEnvironment(),
             .working_directory = options_.working_directory,
             .output_fd = out->second.get(),
             .error_fd = err->second.get(),
             .memory_bytes_max = options_.memory_bytes_max});
  if (!child.ok()) return child.error();
  out->second.reset();
  err->second.reset();

  CommandResult result;
  const std::string fault = ReadBoth(out->first, err->first, result, options_);
  if (!fault.empty()) kill(*child, SIGKILL);
  result.exit_code = WaitForExit(*child);
  if (fault.empty()) return result;
  return Error{ErrorCode::kUnavailable, "`" + argv[0] + "` " + fault};
}

Result<pid_t> SystemCommands::Start(const SpawnRequest& request) {
  const std::lock_guard lock(mutex_);
  if (ending_)
    return Error{ErrorCode::kUnavailable, "the command was not started: the program is ending"};
  const Result<Child> child = Spawn(request);
  if (!child.ok()) return child.error();
  running_ = child->pid;
  return running_;
}

int SystemCommands::WaitForExit(pid_t child) {
  // WNOWAIT keeps the process unreaped, so End() cannot signal another process with the same pid.
  siginfo_t ended{};
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

}  // namespace attune

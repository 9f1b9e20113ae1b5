#include "system/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/result.h"
#include "system/private_files.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/system_error.h"

namespace attune {
namespace {

// Whether the error means that a path does not exist, rather than that it cannot be accessed.
bool IsAbsent(const std::error_code& error) {
  return !error || error == std::errc::no_such_file_or_directory ||
         error == std::errc::not_a_directory;
}

constexpr int kFirstScratchFd = 10;  // above each number that a child's descriptors finally have

struct ChildFailure {
  int error;
  char stage[32];
};

// Everything that the child needs, prepared before the fork. Between vfork and exec the child
// shares the parent's memory, so it must not allocate or lock.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* environment;
  const char* working_directory;  // null: the parent's
  int input_fd;
  int output_fd;
  int error_fd;
  int inherited_fd;
  int announce_fd;
  int failure_fd;
  int cgroup;
  pid_t process_group;
  bool new_session;
  bool dies_with_parent;
  rlim_t memory_bytes_max;      // 0: the parent's
  std::optional<mode_t> umask;  // nullopt: the caller's
  pid_t parent;
};

void Announce(const ChildPlan& plan, pid_t word) {
  if (plan.announce_fd < 0) return;
  [[maybe_unused]] const ssize_t sent = send(plan.announce_fd, &word, sizeof word, MSG_NOSIGNAL);
}

[[noreturn]] void Fail(const ChildPlan& plan, const char* stage) {
  ChildFailure failure{.error = errno, .stage = {}};
  for (size_t i = 0; stage[i] != '\0' && i + 1 < sizeof failure.stage; ++i) {
    failure.stage[i] = stage[i];
  }
  if (plan.process_group == 0) Announce(plan, -getpid());
  [[maybe_unused]] const ssize_t written = write(plan.failure_fd, &failure, sizeof failure);
  _exit(127);
}

// Copies a descriptor to a high number, so that it does not collide with the numbers assigned next.
int CopyToHighFd(const ChildPlan& plan, int fd) {
  if (fd < 0) return fd;
  const int lifted = fcntl(fd, F_DUPFD_CLOEXEC, kFirstScratchFd);
  if (lifted < 0) Fail(plan, "fcntl");
  return lifted;
}

void AssignFd(const ChildPlan& plan, int fd, int number) {
  if (fd >= 0 && dup2(fd, number) < 0) Fail(plan, "dup2");
}

[[noreturn]] void RunChild(ChildPlan plan) {
  if (plan.dies_with_parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(plan, "prctl");
    if (getppid() != plan.parent) _exit(127);  // the parent died before the line above
  }
  if (plan.new_session) {
    if (setsid() < 0) Fail(plan, "setsid");
  } else if (setpgid(0, plan.process_group) != 0) {
    Fail(plan, "setpgid");
  }
  Announce(plan, getpgrp());
  if (plan.working_directory && chdir(plan.working_directory) != 0) Fail(plan, "chdir");

  if (plan.umask) umask(*plan.umask);
  if (plan.memory_bytes_max != 0) {
    rlimit memory{};
    if (getrlimit(RLIMIT_AS, &memory) != 0) Fail(plan, "getrlimit");
    memory.rlim_max = std::min(memory.rlim_max, plan.memory_bytes_max);
    memory.rlim_cur = memory.rlim_max;
    if (setrlimit(RLIMIT_AS, &memory) != 0) Fail(plan, "setrlimit");
  }

  plan.failure_fd = CopyToHighFd(plan, plan.failure_fd);
  const int input = CopyToHighFd(plan, plan.input_fd);
  const int output = CopyToHighFd(plan, plan.output_fd);
  const int error = CopyToHighFd(plan, plan.error_fd);
  const int inherited = CopyToHighFd(plan, plan.inherited_fd);
  AssignFd(plan, input, STDIN_FILENO);
  AssignFd(plan, output, STDOUT_FILENO);
  AssignFd(plan, error, STDERR_FILENO);
  // The child must not inherit descriptors that a library opened without close-on-exec.
  const int first_closed = plan.inherited_fd >= 0 ? kInheritedFd + 1 : kInheritedFd;
  AssignFd(plan, inherited, kInheritedFd);
  syscall(SYS_close_range, first_closed, ~0U, CLOSE_RANGE_CLOEXEC);

  // Handlers must not run in memory shared with the parent; all signals are blocked until here.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  execve(plan.program, plan.argv, plan.environment);
  Fail(plan, "execve");
}

// Separate from Spawn(), so that none of its variables lives across the vfork.
[[gnu::noinline]] pid_t Fork(const ChildPlan& plan) {
  const pid_t pid = plan.cgroup >= 0 ? ForkInto(plan.cgroup) : vfork();
  if (pid == 0) RunChild(plan);
  return pid;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& each : strings) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string Explain(const SpawnRequest& request, const ChildFailure& failure) {
  const std::string_view stage = failure.stage;
  std::string reason = std::strerror(failure.error);
  if (stage == "chdir") {
    return "cannot enter the working directory " + request.working_directory.string() + ": " +
           reason;
  }
  if (stage != "execve") reason = failure.stage + (": " + reason);
  if (failure.error == ENOEXEC) reason += " (a script must begin with #! and its interpreter)";
  if (failure.error == ENOENT) reason += " (its interpreter is missing)";
  return "cannot start " + request.program.string() + ": " + reason;
}

}  // namespace

Result<Child> Spawn(const SpawnRequest& request) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return SystemError("cannot start a process", errno);
  auto failures = MakePipe();
  if (!failures.ok()) return failures.error();
  auto& [failure_reader, failure_writer] = *failures;

  const std::vector<char*> argv = Pointers(request.argv);
  const std::vector<char*> environment = Pointers(request.environment);
  ChildPlan plan{
      .program = request.program.c_str(),
      .argv = argv.data(),
      .environment = environment.data(),
      .working_directory =
          request.working_directory.empty() ? nullptr : request.working_directory.c_str(),
      .input_fd = null.get(),
      .output_fd = request.output_fd,
      .error_fd = request.error_fd >= 0 ? request.error_fd : request.output_fd,
      .inherited_fd = request.inherited_fd,
      .announce_fd = request.announce_fd,
      .failure_fd = failure_writer.get(),
      .cgroup = request.cgroup,
      .process_group = request.process_group,
      .new_session = request.new_session,
      .dies_with_parent = request.dies_with_parent,
      .memory_bytes_max = request.memory_bytes_max,
      .umask = UmaskOfPrograms(),
      .parent = getpid(),
  };

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = Fork(plan);
  int fork_error = errno;
  const int cgroup_error = pid < 0 && plan.cgroup >= 0 ? fork_error : 0;
  if (cgroup_error != 0) {
    plan.cgroup = -1;
    pid = Fork(plan);
    fork_error = errno;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SystemError("cannot start a process", fork_error);

  failure_writer.reset();
  ChildFailure failure;
  if (read(failure_reader.get(), &failure, sizeof failure) == sizeof failure) {
    waitpid(pid, nullptr, 0);
    return Invalid(Explain(request, failure));
  }
  // Only this function reaps the child, so its pid cannot be reused yet.
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) {
    const Error error = SystemError("pidfd_open", errno);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return error;
  }
  return Child{pid, std::move(pidfd), cgroup_error};
}

pid_t ForkInto(int cgroup) {
  // The child gets its own memory. Sharing it as vfork() does would need a separate stack.
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(cgroup);
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

std::optional<ExitStatus> Reap(int pidfd) {
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{.exit_code = info.si_status};
  return ExitStatus{.signal = info.si_status};
}

Result<std::filesystem::path> FindProgram(const std::string& name,
                                          const std::filesystem::path& working_directory,
                                          const std::string& path_variable) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::error_code error;
  if (!working_directory.empty() && !fs::is_directory(working_directory, error)) {
    return Invalid("the working directory " + working_directory.string() +
                   (IsAbsent(error) ? " does not exist or is not a folder"
                                    : " cannot be used: " + error.message()));
  }
  const fs::path base = fs::absolute(working_directory.empty() ? "." : working_directory, error);
  if (error) return Invalid("the working directory cannot be used: " + error.message());
  if (name.empty()) return Invalid("the command's program is empty");

  if (name.find('/') == std::string::npos) {
    std::string_view rest = path_variable;
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
      const fs::path candidate = (base / folder / name).lexically_normal();
      if (fs::is_regular_file(candidate, ignored) && access(candidate.c_str(), X_OK) == 0) {
        return candidate;
      }
    }
    return Error{ErrorCode::kNotFound, "the program '" + name + "' is not in PATH (" +
                                           path_variable + "); write ./" + name +
                                           " for one in the working directory " + base.string()};
  }

  const fs::path program = (base / name).lexically_normal();
  if (!fs::exists(program, error)) {
    if (!IsAbsent(error))
      return Invalid("the program " + program.string() + " cannot be used: " + error.message());
    return Error{ErrorCode::kNotFound,
                 "the program '" + name + "' does not exist: there is no " + program.string()};
  }
  if (!fs::is_regular_file(program, ignored)) {
    return Invalid("the program " + program.string() + " is not a file");
  }
  if (access(program.c_str(), X_OK) != 0) {
    return Invalid("the program " + program.string() + " is not executable; run `chmod +x` on it");
  }
  return program;
}

}  // namespace attune

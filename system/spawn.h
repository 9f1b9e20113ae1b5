#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// The number under which a spawned process finds the one descriptor that it inherits.
inline constexpr int kInheritedFd = 3;

struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;
  int cgroup_error = 0;  // errno, if it could not start in SpawnRequest::cgroup
};

struct SpawnRequest {
  std::filesystem::path program;  // absolute; not looked up
  std::vector<std::string> argv;
  std::vector<std::string> environment;     // NAME=value
  std::filesystem::path working_directory;  // empty: the caller's
  int output_fd = -1;                       // becomes stdout and stderr; -1: the caller's
  int error_fd = -1;                        // becomes stderr instead; -1: output_fd
  int inherited_fd = -1;                    // becomes kInheritedFd; -1: none
  pid_t process_group = 0;                  // to join; 0: a new one
  bool new_session = false;                 // instead of a process group
  // A cgroup's folder to start in; if the kernel refuses that, and for -1, the caller's cgroup.
  int cgroup = -1;
  // SIGKILL when the calling *thread* ends: the kernel's parent-death signal is tied to the thread
  // that forked, not to its process. Call Spawn() from one that lives as long as its children may.
  bool dies_with_parent = true;
  // A socket to which the child sends its process group (a pid_t) before the program runs, and the
  // negative of a new one should its start fail after all; -1: none.
  int announce_fd = -1;
};

// Starts a process that inherits stdin from /dev/null, the descriptors named in `request`, and
// nothing else: no other descriptor, no blocked or ignored signal. Returns after its exec.
// Errors: kInvalid if the program cannot be run, and those of SystemError().
Result<Child> Spawn(const SpawnRequest& request);

// As fork(), with the child in the cgroup of this folder from its first instant; clone3(2). The
// child may do nothing but system calls.
pid_t ForkInto(int cgroup);

// How a process ended.
struct ExitStatus {
  int exit_code = 0;
  int signal = 0;  // 0: it left by itself, with exit_code

  bool ok() const { return exit_code == 0 && signal == 0; }
};

// Reaps a child of this process that has ended. Empty if it has not, or is not this one's to reap.
std::optional<ExitStatus> Reap(int pidfd);

// The file that a command's first word names: a path relative to `working_directory`, or a name
// looked up in PATH. kNotFound, kInvalid: it is missing, a folder, or not executable.
Result<std::filesystem::path> FindProgram(const std::string& name,
                                          const std::filesystem::path& working_directory,
                                          const std::string& path_variable);

}  // namespace attune

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// The descriptor number of the one descriptor that a spawned process inherits.
inline constexpr int kInheritedFd = 3;

struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;
  int cgroup_error = 0;  // errno if the child could not start in SpawnRequest::cgroup
};

struct SpawnRequest {
  std::filesystem::path program;  // absolute; not looked up
  std::vector<std::string> argv;
  std::vector<std::string> environment;     // NAME=value
  std::filesystem::path working_directory;  // empty: the caller's
  int output_fd = -1;                       // becomes stdout and stderr; -1: the caller's
  int error_fd = -1;                        // becomes stderr instead; -1: output_fd
  int inherited_fd = -1;                    // becomes kInheritedFd; -1: none
  pid_t process_group = 0;                  // the group that the child joins; 0: a new one
  bool new_session = false;                 // start a new session instead of a process group
  // Descriptor of the folder of the cgroup to start in. -1: the caller's cgroup. The child also
  // starts there if the kernel refuses this one.
  int cgroup = -1;
  // Kill the child with SIGKILL when the calling *thread* ends. The kernel ties its parent-death
  // signal to the thread that forked, not to the process. So call Spawn() from a thread that lives
  // as long as its children may.
  bool dies_with_parent = true;
  uint64_t memory_bytes_max = 0;  // of the child's address space; 0: as much as the caller
  // The child sends its process group (a pid_t) to this socket before the program runs. If it has
  // made a new group and its start then fails, it sends the negative of the group. -1: no socket.
  int announce_fd = -1;
};

// Starts a process and returns after its exec. The process inherits stdin from /dev/null and the
// descriptors in `request`. It inherits no other descriptor and no blocked or ignored signal.
// Errors: kInvalid if the program cannot be run, and those of SystemError().
Result<Child> Spawn(const SpawnRequest& request);

// Like fork(), but the child starts in the cgroup whose folder has this descriptor; see clone3(2).
// The child may make only system calls.
pid_t ForkInto(int cgroup);

// How a process ended.
struct ExitStatus {
  int exit_code = 0;
  int signal = 0;  // 0: the process exited by itself, with exit_code

  bool ok() const { return exit_code == 0 && signal == 0; }
};

// Reaps a child of this process that has ended. Returns nullopt if it still runs, or is not a child
// that this process must reap.
std::optional<ExitStatus> Reap(int pidfd);

// Finds the file of a command's first word: a path relative to `working_directory`, or a name in
// PATH. kNotFound: the file is missing. kInvalid: it is a folder or not executable, or the working
// directory cannot be used.
Result<std::filesystem::path> FindProgram(const std::string& name,
                                          const std::filesystem::path& working_directory,
                                          const std::string& path_variable);

}  // namespace attune

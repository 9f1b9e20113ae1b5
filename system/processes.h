#pragma once

#include <sys/types.h>

#include <vector>

namespace attune {

// What the kernel says of a process.
struct ProcessState {
  pid_t parent = 0;  // 0: there is no such process
  pid_t group = 0;
  bool is_dead = true;      // ended, and perhaps not reaped yet
  bool is_stopped = false;  // by a signal, or a debugger
};
ProcessState StateOf(pid_t pid);
std::vector<pid_t> AllProcesses();

}  // namespace attune

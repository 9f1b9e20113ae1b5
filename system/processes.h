#pragma once

#include <sys/types.h>

#include <vector>

#include "system/unique_fd.h"

namespace attune {

// What the kernel says of a process.
struct ProcessState {
  pid_t parent = 0;  // 0: there is no such process
  pid_t group = 0;
  bool is_dead = true;      // ended, and perhaps not reaped yet
  bool is_stopped = false;  // by a signal, or a debugger
};
ProcessState ReadProcess(pid_t pid);
std::vector<pid_t> AllProcesses();

struct Descendant {
  pid_t pid = 0;
  ProcessState state;
};
// Children of a process, their children, and so on; each after its parent.
std::vector<Descendant> DescendantsOf(pid_t ancestor);

// A descriptor that polls readable once the process has ended; without one, errno says why.
// REQUIRES: nobody else reaps the process meanwhile.
UniqueFd OpenPidfd(pid_t pid);

// In a freshly forked child: SIGKILL when the parent dies, also when it already has.
void DieWithParent(pid_t parent);

}  // namespace attune

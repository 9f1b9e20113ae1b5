#pragma once

#include <sys/types.h>

#include <vector>

#include "system/unique_fd.h"

namespace attune {

// The kernel's view of a process.
struct ProcessState {
  pid_t parent = 0;  // 0: there is no such process
  pid_t group = 0;
  bool is_dead = true;      // it has ended, but may not be reaped yet
  bool is_stopped = false;  // by a signal, or a debugger
};
ProcessState ReadProcess(pid_t pid);
std::vector<pid_t> AllProcesses();

struct Descendant {
  pid_t pid = 0;
  ProcessState state;
};
// The children of a process, their children, and so on. Each follows its parent.
std::vector<Descendant> DescendantsOf(pid_t ancestor);

// Returns a descriptor that becomes readable when the process ends. If it is invalid, errno says
// why. REQUIRES: nobody else reaps the process meanwhile.
UniqueFd OpenPidfd(pid_t pid);

// Call it in a newly forked child. The kernel then kills the child with SIGKILL when `parent` dies,
// even if that has already happened.
void DieWithParent(pid_t parent);

}  // namespace attune

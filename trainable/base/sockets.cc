#include "trainable/base/sockets.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace attune::trainable {

void ThrowErrno(const std::string& what) { throw Error(what + ": " + std::strerror(errno)); }

void DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the call above
}

}  // namespace attune::trainable

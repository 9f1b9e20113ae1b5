// QEMU 7.2 does not know prctl(PR_SET_CHILD_SUBREAPER), which an executor needs to adopt orphans. Loaded by LD_PRELOAD,
// this says that it works. Orphans then go to the first process of the chroot.
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long arguments[4];
  for (int i = 0; i < 4; ++i) arguments[i] = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_CHILD_SUBREAPER) return 0;
  return syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

#include "executor/processes/follow_up.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "executor/processes/environment.h"
#include "system/own_program.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

constexpr std::string_view kFollowUpArgument = "--attune-follow-up";

}  // namespace

void MaybeRunFollowUp(int argc, char** argv) {
  if (argc < 3 || argv[1] != kFollowUpArgument) return;
  prctl(PR_SET_NAME, "attune-follow");
  // A service manager signals all processes of a service.
  for (const int ignored : {SIGHUP, SIGINT, SIGTERM}) signal(ignored, SIG_IGN);
  pollfd exit{kInheritedFd, POLLIN, 0};
  while (poll(&exit, 1, -1) < 0 && errno == EINTR) {
  }
  close(kInheritedFd);
  execv(argv[2], argv + 2);
  _exit(127);
}

Result<Child> StartAfterExit(int pidfd, const std::filesystem::path& program,
                             const std::vector<std::string>& arguments) {
  const UniqueFd output(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!output) return SystemError("cannot open /dev/null", errno);
  std::vector<std::string> argv{"attune-follow", std::string(kFollowUpArgument), program.string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Spawn({.program = OwnProgram(),
                .argv = std::move(argv),
                .environment = ProgramEnvironment({}),
                .output_fd = output.get(),
                .inherited_fd = pidfd,
                .new_session = true,
                .dies_with_parent = false});
}

}  // namespace attune::gang

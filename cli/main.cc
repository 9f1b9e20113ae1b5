#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/host/local_host.h"
#include "cli/host/terminal.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/run.h"
#include "executor/processes/guard.h"

namespace {

// Writing to a closed connection or over the file size limit then returns an error instead of
// ending the process. Uses a handler, because trials would inherit SIG_IGN.
void SurviveFailedWrites() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  attune::gang::MaybeRunGuard(argc, argv);
  SurviveFailedWrites();

  using attune::cli::Output;
  Output out(std::cout, attune::cli::TraitsOf(STDOUT_FILENO));
  Output err(std::cerr, attune::cli::TraitsOf(STDERR_FILENO));
  const attune::cli::Host host = attune::cli::LocalHost();
  attune::cli::Console console{
      .out = out, .err = err, .interrupt = attune::cli::Interrupt::OfProcess(), .host = host};
  return static_cast<int>(attune::cli::Run({argv + 1, argv + argc}, console));
}

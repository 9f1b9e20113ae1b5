// Runs one gang, for tests that kill or stop its host. Arguments: FOLDER WORLD_SIZE PROC COMMAND...
// It reads its cgroup from PROC instead of /proc. It prints `started PID...`, and `reported` when
// rank 0 has reported. At SIGUSR1 it sets a deadline and stops itself.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "executor/gang/folders.h"
#include "executor/gang/supervisor.h"
#include "executor/processes/boot_clock.h"
#include "executor/processes/guard.h"

namespace gang = attune::gang;

int main(int argc, char** argv) {
  gang::MaybeRunGuard(argc, argv);
  spdlog::set_level(spdlog::level::off);  // the test reads standard output
  const gang::Folders folders(argv[1]);
  gang::GangSpec spec;
  spec.attempt = {.sweep = 1, .trial = 0, .attempt = 1, .epoch = 1};
  spec.world_size = std::stoi(argv[2]);
  for (int rank = 0; rank < spec.world_size; ++rank) {
    spec.ranks.push_back({.rank = rank, .local_rank = rank});
  }
  spec.program.command.assign(argv + 4, argv + argc);
  spec.milestone = 1000;
  spec.attempt_dir = folders.Attempt(spec.attempt);
  spec.checkpoint_dir = folders.Checkpoints(spec.attempt);
  spec.files_dir = folders.Files(spec.attempt);

  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, nullptr);
  auto supervisor = gang::Supervisor::Start(
      {.launcher_log_dir = folders.Launchers(), .cgroups = {.identity = argv[1], .proc = argv[3]}},
      [](const gang::Fact& fact) {
        if (const auto* started = std::get_if<gang::Started>(&fact.what)) {
          std::cout << "started";
          for (const pid_t pid : started->pids) std::cout << ' ' << pid;
          std::cout << std::endl;
        }
        if (std::holds_alternative<gang::Report>(fact.what)) std::cout << "reported" << std::endl;
      });
  if (!supervisor.ok()) return 1;
  supervisor.value()->Run(spec);
  for (;;) {
    if (sigwaitinfo(&usr1, nullptr) != SIGUSR1) continue;
    const auto now = attune::gang::BootClock::now().time_since_epoch();
    supervisor.value()->SetDeadline(now + std::chrono::milliseconds(200));
    raise(SIGSTOP);
  }
}

// Builds an environment, for tests that kill the process that builds. Arguments: FOLDER
// REQUIREMENTS. It ends when it is killed.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "executor/environments/environment_builder.h"
#include "executor/processes/guard.h"

int main(int argc, char** argv) {
  attune::gang::MaybeRunGuard(argc, argv);
  spdlog::set_level(spdlog::level::off);
  attune::agent::CommandProcesses processes;
  attune::agent::EnvironmentBuilder builder(
      {.folder = argv[1]}, processes,
      [](const attune::gang::AttemptId&, attune::agent::BuiltEnvironment) {});
  attune::gang::GangSpec spec;
  spec.program.command = {"python3"};
  spec.environment_files = attune::gang::EnvironmentFiles{.python = argv[2]};
  builder.Build(spec);
  for (;;) pause();
}

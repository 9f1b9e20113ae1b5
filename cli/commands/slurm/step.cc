#include "cli/commands/slurm/step.h"

#include <chrono>
#include <cstdlib>

#include "base/result.h"
#include "slurm/pilot.h"
#include "system/files.h"
#include "system/own_program.h"

namespace attune::cli {
namespace {

constexpr std::chrono::hours kAllocationMax{24 * 365};

// Number of nodes in the current allocation; 0 outside of one.
int CountNodes() {
  const char* nodes = std::getenv("SLURM_JOB_NUM_NODES");
  return std::getenv("SLURM_JOB_ID") == nullptr || nodes == nullptr ? 0 : std::atoi(nodes);
}

}  // namespace

Status SlurmStep::Check() {
  if (CountNodes() > 0) return {};
  return Error{
      ErrorCode::kInvalid,
      "--slurm: this command does not run in a Slurm allocation (SLURM_JOB_ID is not set)\nstart "
      "one with `salloc --nodes=2 --exclusive attune run …`, or from a batch script, or let "
      "`attune slurm up` start executors when they are needed"};
}

Result<std::unique_ptr<SlurmStep>> SlurmStep::Start(const std::filesystem::path& data_dir,
                                                    const RunningServer& server, Output& err) {
  if (const Status inside = Check(); !inside.ok()) return inside.error();
  const std::filesystem::path data = std::filesystem::absolute(data_dir).lexically_normal();
  const std::filesystem::path place = data / "slurm";
  std::error_code error;
  const slurm::PilotPlaces places{.program = OwnProgram(),
                                  .server = server.rpc_target(),
                                  .token_file = data / "join",
                                  .data_dir = data,
                                  .logs = place / "logs"};
  std::filesystem::create_directories(places.logs, error);
  const std::filesystem::path script = place / "step.sh";
  if (const Status written = WriteWhole(script, slurm::PilotScript(places, script), kPrivate);
      !written.ok())
    return written.error();
  return std::unique_ptr<SlurmStep>(
      new SlurmStep({"bash", script, "allocation"}, places.logs, err));
}

SlurmStep::SlurmStep(std::vector<std::string> argv, const std::filesystem::path& logs, Output& err)
    : commands_(kAllocationMax), thread_([this, argv = std::move(argv), logs, &err] {
        const Result<CommandResult> ran = commands_.Run(argv);
        const std::string words = ran.ok() ? ran->err : ran.error().message;
        if (ran.ok() && ran->exit_code == 0) return;
        err.Print("the executors of this allocation have ended" +
                  (words.empty() ? "" : ": " + words) + "\ntheir logs are in " + logs.string());
      }) {}

SlurmStep::~SlurmStep() {
  commands_.End();
  thread_.join();
}

}  // namespace attune::cli

#include "slurm/engine.h"

#include "pilots/names.h"

namespace attune::slurm {

const pilots::EngineFacts& SlurmEngine::Facts() {
  static const pilots::EngineFacts facts{
      .name = "Slurm",
      .command = "slurm",
      .cleanup = "end its pilots (jobs named attune-… in `squeue`) with `scancel`",
      .leave_before = kLeaveBefore,
      .leave_timeout = kLeaveTimeout,
      .down_timeout = kDownTimeout,
      .place = "partition",
      .gpu_option = "--gres"};
  return facts;
}

Result<std::string> SlurmEngine::Submit(const std::string& pilot) {
  return tools_.Submit(SbatchOptions(submission_.options, submission_.places, pilot),
                       submission_.script);
}

Result<std::vector<pilots::Job>> SlurmEngine::Jobs() {
  return tools_.Jobs(pilots::PilotPrefix(fleet_));
}

Status SlurmEngine::RequestExit(const std::vector<std::string>& ids) {
  return tools_.RequestExit(ids);
}

Status SlurmEngine::Cancel(const std::vector<std::string>& ids) { return tools_.Cancel(ids); }

std::string SlurmEngine::LogHint(const pilots::Job& job) const {
  return "read " +
         (submission_.places.logs / (job.name + (job.nodes > 1 ? ".*" : ".log"))).string();
}

}  // namespace attune::slurm

#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pilots/engine.h"
#include "slurm/pilot.h"
#include "slurm/tools.h"

namespace attune::slurm {

// Slurm as an engine of pilots.
class SlurmEngine final : public pilots::Engine {
 public:
  // What Submit() submits. LogHint() needs `places.logs`.
  struct Submission {
    PilotOptions options;
    PilotPlaces places;
    std::filesystem::path script;
  };

  static const pilots::EngineFacts& Facts();

  // `tools` must outlive the engine. `fleet`: the fleet's id. Without a `submission`, do not call
  // Submit().
  SlurmEngine(Tools& tools, std::string fleet, Submission submission = {})
      : tools_(tools), fleet_(std::move(fleet)), submission_(std::move(submission)) {}

  const pilots::EngineFacts& facts() const override { return Facts(); }
  Result<std::string> Submit(const std::string& pilot) override;
  Result<std::vector<pilots::Job>> Jobs() override;
  Status RequestExit(const std::vector<std::string>& ids) override;
  Status Cancel(const std::vector<std::string>& ids) override;
  std::string LogHint(const pilots::Job& job) const override;

 private:
  Tools& tools_;
  std::string fleet_;
  Submission submission_;
};

}  // namespace attune::slurm

#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "cli/host.h"
#include "cli/output.h"
#include "system/command.h"

namespace attune::cli {

// Runs an executor on each node of the current Slurm allocation until destroyed. Prints a message
// if all of them end before that.
class SlurmStep {
 public:
  // kInvalid outside of an allocation.
  static Result<std::unique_ptr<SlurmStep>> Start(const std::filesystem::path& data_dir,
                                                  const RunningServer& server, Output& err);
  static Status Check();

  ~SlurmStep();
  SlurmStep(const SlurmStep&) = delete;
  SlurmStep& operator=(const SlurmStep&) = delete;

 private:
  SlurmStep(std::vector<std::string> argv, const std::filesystem::path& logs, Output& err);

  SystemCommands commands_;
  std::thread thread_;
};

}  // namespace attune::cli

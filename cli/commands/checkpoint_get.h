#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/commands/command.h"

namespace attune::cli {

// Selects one of a trial's checkpoints; by default the newest.
struct CheckpointChoice {
  std::optional<int64_t> step;
  bool best = false;
};

std::string TextOf(const CheckpointName& checkpoint);  // s1/17/2-900

// Runs `attune checkpoint get`. `name`: a checkpoint, a trial, or a sweep, for its best checkpoint.
// `out`: the folder to create; if empty, it is named after the checkpoint.
ExitCode GetCheckpoint(const std::string& name, const CheckpointChoice& choice,
                       const std::string& out, const OutputFlags& output, Console& console,
                       Api& api);

// Downloads a checkpoint into the new folder `out`. kNotFound: it was dropped.
Status DownloadCheckpoint(Api& api, const CheckpointName& checkpoint, const std::string& out);

// The checkpoint that `name` and `step` select. It may already be dropped if no other checkpoint of
// that step is kept, because dropping it again is not an error.
Result<CheckpointName> NameToDrop(Api& api, const std::string& name, std::optional<int64_t> step);

}  // namespace attune::cli

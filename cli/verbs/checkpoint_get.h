#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/verbs/verb.h"

namespace attune::cli {

// Which of a trial's checkpoints; nothing said: the newest.
struct CheckpointChoice {
  std::optional<int64_t> step;
  bool best = false;
};

std::string TextOf(const CheckpointName& checkpoint);  // s1/17/2-900

// `attune checkpoint get`. `name`: a checkpoint, a trial, or a sweep, whose best is meant then;
// `out`: the folder to make, empty for one named after the checkpoint.
ExitCode GetCheckpoint(const std::string& name, const CheckpointChoice& choice,
                       const std::string& out, const OutputFlags& output, Console& console,
                       Api& api);

// The one that `name` and a step say. One that was dropped already is found as well, where none of
// that step is kept: dropping it again is no error.
Result<CheckpointName> NameToDrop(Api& api, const std::string& name, std::optional<int64_t> step);

}  // namespace attune::cli

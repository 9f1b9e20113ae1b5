#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/output.h"

namespace attune::cli {

// Copies the log of a rank to an output, piece by piece.
class LogFollower {
 public:
  // `attempt` nullopt: follows the newest attempt, and later ones when they start.
  LogFollower(Api& api, TrialName trial, int rank, std::optional<int> attempt, Output& output)
      : api_(api),
        trial_(std::move(trial)),
        rank_(rank),
        attempt_(attempt),
        newest_only_(!attempt.has_value()),
        output_(output) {}

  // Writes the lines since the last call. `attempts`: number of the trial's attempts so far.
  // Errors: kNotFound while the trial waits for its first gang, and refusals of the server. Can be
  // called again after an error.
  Status Copy(int64_t attempts);

 private:
  Status CopyRest();

  Api& api_;
  TrialName trial_;
  int rank_;
  std::optional<int> attempt_;  // the attempt whose log is copied
  bool newest_only_;
  Output& output_;
  int64_t offset_ = 0;  // position in that log
};

}  // namespace attune::cli

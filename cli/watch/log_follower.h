#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/output.h"

namespace attune::cli {

// Writes what a rank of a trial prints, a piece at a time.
class LogFollower {
 public:
  // `attempt` absent: the newest, over all that are to come.
  LogFollower(Api& api, TrialName trial, int rank, std::optional<int> attempt, Output& output)
      : api_(api),
        trial_(std::move(trial)),
        rank_(rank),
        attempt_(attempt),
        newest_only_(!attempt.has_value()),
        output_(output) {}

  // What is new since the last call; `attempts`: how many the trial has had. Errors: kNotFound
  // while a trial waits for its first gang, and what the server refuses. May be called again.
  Status Copy(int64_t attempts);

 private:
  Status CopyRest();

  Api& api_;
  TrialName trial_;
  int rank_;
  std::optional<int> attempt_;  // whose log is being read
  bool newest_only_;
  Output& output_;
  int64_t offset_ = 0;  // in it
};

}  // namespace attune::cli

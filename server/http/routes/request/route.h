#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/log/event.h"

namespace attune::server {

// The ids in a path.
struct Target {
  TrialId trial;
  uint32_t attempt = 0;  // of a checkpoint, with `step`
  Step step;
  std::string executor;
  std::string token;  // the name
  std::string code;   // the digest of a snapshot

  SweepId sweep() const { return trial.sweep; }
  CheckpointId checkpoint() const { return {trial, attempt, step}; }
};

// A path of the API, split at its last colon; the verb follows the colon.
struct Path {
  std::string_view path;
  std::string_view verb;

  static Path Split(std::string_view text);
};

// Returns the ids in a path if it matches `pattern`, which consists of words and placeholders
// ({sweep}, {trial}, {checkpoint}, {executor}, {token}, {code}); nullopt otherwise.
std::optional<Target> Match(std::string_view pattern, std::string_view path);

}  // namespace attune::server

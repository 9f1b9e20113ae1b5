#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/log/event.h"

namespace attune::server {

// The ids that a path names.
struct Target {
  TrialId trial;
  uint32_t attempt = 0;  // with `step`, of a checkpoint
  Step step;
  std::string executor;

  SweepId sweep() const { return trial.sweep; }
  CheckpointId checkpoint() const { return {trial, attempt, step}; }
};

// A path of the API taken apart: what follows the last colon is the verb.
struct Path {
  std::string_view path;
  std::string_view verb;

  static Path Split(std::string_view text);
};

// The ids in a path that has the form of `pattern`: words, and the places of ids ({sweep}, {trial},
// {checkpoint}, {executor}). nullopt when it has another.
std::optional<Target> Match(std::string_view pattern, std::string_view path);

}  // namespace attune::server

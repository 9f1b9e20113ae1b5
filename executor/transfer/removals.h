#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "attune/v1/executor.pb.h"

namespace attune::agent {

// Files of a sweep in the data folder.
struct SweepFiles {
  uint64_t sweep = 0;
  // The identity of the log in which the sweep was created, which marks its folder; 0: no mark.
  uint64_t identity = 0;

  auto operator<=>(const SweepFiles&) const = default;
};

// Files that the server wants to be deleted.
struct Removals {
  google::protobuf::RepeatedPtrField<v1::CheckpointRemoval> checkpoints;
  std::vector<SweepFiles> sweeps;       // delete these with all files of their trials
  std::vector<SweepFiles> lost_sweeps;  // set these aside (gang/set_aside.h)
};

}  // namespace attune::agent

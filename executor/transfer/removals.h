#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "attune/v1/executor.pb.h"

namespace attune::agent {

// Files of a sweep in the data folder.
struct SweepFiles {
  uint64_t sweep = 0;
  uint64_t identity = 0;  // of the log when it was created, which marks the folder; 0: no mark

  auto operator<=>(const SweepFiles&) const = default;
};

// What the server wants to be gone.
struct Removals {
  google::protobuf::RepeatedPtrField<v1::CheckpointRemoval> checkpoints;
  std::vector<SweepFiles> sweeps;       // to be deleted, with all files of their trials
  std::vector<SweepFiles> lost_sweeps;  // to be set aside (gang/set_aside.h)
};

}  // namespace attune::agent

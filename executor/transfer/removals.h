#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"

namespace attune::agent {

// What the server wants to be gone: checkpoints, and sweeps with all files of their trials.
struct Removals {
  google::protobuf::RepeatedPtrField<v1::CheckpointRemoval> checkpoints;
  std::vector<uint64_t> sweeps;
  std::string server;  // whose they are (gang::WriteOwner)
};

}  // namespace attune::agent

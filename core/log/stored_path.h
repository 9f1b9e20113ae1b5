#pragma once

#include <string>

#include "core/base/ids.h"

// Paths of files in an object store, below its address.
namespace attune {

// Names a sweep uniquely, also after a backup was restored and for servers that share a store:
// s1-00c4a1f03b7d2e95. `identity` is that of the log when the sweep was created.
std::string StoredSweepName(LogIdentity identity, SweepId sweep);

// The folder of all checkpoints of a sweep: checkpoints/s1-00c4a1f03b7d2e95
std::string StoredCheckpoints(LogIdentity identity, SweepId sweep);

// The folder of a checkpoint. It contains digits of the digest, so a path never means other
// contents: checkpoints/s1-00c4a1f03b7d2e95/17/2-900-4f0c2d9e8a7b6c5d
std::string StoredPath(LogIdentity identity, const CheckpointId& id, const std::string& digest);

}  // namespace attune

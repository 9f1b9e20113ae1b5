#include "core/log/stored_path.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

const CheckpointId kCheckpoint{{SweepId(1), TrialNumber(17)}, 2, Step(900)};

TEST(StoredPath, NamesTheLogTheCheckpointAndItsContents) {
  EXPECT_EQ(StoredPath(LogIdentity(0x1c4a1f03b7d2e9), kCheckpoint, "sha256:4f0c2d9e8a7b6c5d4e3f"),
            "checkpoints/s1-001c4a1f03b7d2e9/17/2-900-4f0c2d9e8a7b6c5d");
}

TEST(StoredPath, IsBelowTheFolderOfItsSweep) {
  EXPECT_EQ(StoredCheckpoints(LogIdentity(0), SweepId(3)), "checkpoints/s3-0000000000000000");
}

}  // namespace
}  // namespace attune

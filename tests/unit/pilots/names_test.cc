#include "pilots/names.h"

#include <gtest/gtest.h>

namespace attune::pilots {
namespace {

TEST(PilotNames, NamesContainFleetAndNumber) {
  EXPECT_EQ(PilotName("0a1b2c3d", 7), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotNumber("0a1b2c3d", "attune-0a1b2c3d-7"), 7);
  EXPECT_FALSE(PilotNumber("0a1b2c3d", "attune-0a1b2c3e-7"));
  EXPECT_FALSE(PilotNumber("0a1b2c3d", "attune-0a1b2c3d-7x"));
}

TEST(PilotNames, FindsThePilotOfAnExecutor) {
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3d-7"), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3d-7.12"), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3e-7.12"), "");
  EXPECT_EQ(PilotOf("0a1b2c3d", "node7.cluster.edu"), "");
}

}  // namespace
}  // namespace attune::pilots

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const Environment kCollectives{{"GANG_PROGRAM_FORM", "collectives"}};

class GangOf : public ::testing::TestWithParam<int> {};

TEST_P(GangOf, CollectivesReturnTheirResults) {
  const int world_size = GetParam();
  FakeGang gang(world_size, nullptr, kCollectives);
  if (world_size > 1) gang.RelayRendezvous();
  EXPECT_FALSE(gang.Await(0, "done").is_null()) << gang.Output();
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();
}

INSTANTIATE_TEST_SUITE_P(Collectives, GangOf, ::testing::Values(1, 2, 3));

std::string FailureOf(int rank, const std::string& mode) {
  FakeGang gang(3, {{"config", {{"mode", mode}}}}, kCollectives);
  gang.RelayRendezvous();
  const json error = gang.Await(rank, "error");
  if (error.is_null()) return gang.Output();
  EXPECT_NE(error.value("lost_peer", false), true) << error;
  return error["message"];
}

TEST(Collectives, NamesARankThatLeftWithinTheTimeout) {
  EXPECT_THAT(FailureOf(0, "leaves"),
              AllOf(HasSubstr("Barrier: "), HasSubstr(" 1 s "), HasSubstr("rank 1,")));
}

TEST(Collectives, NamesTheCallsOfRanksIfTheyDiffer) {
  for (const int rank : {0, 1}) {
    EXPECT_THAT(FailureOf(rank, "another_call"),
                AllOf(HasSubstr("rank 0 calls AllReduce "), HasSubstr("rank 1 calls Broadcast "),
                      HasSubstr("rank 2 of Float[3] on cpu")));
  }
}

TEST(Collectives, RefusesDifferentShapesOnEveryRank) {
  EXPECT_THAT(
      FailureOf(2, "another_shape"),
      AllOf(HasSubstr("Float[3]"), HasSubstr("rank 1 calls AllReduce "), HasSubstr("Float[4]")));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing

#include "executor/gang/blame.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "system/spawn.h"

namespace attune::gang {
namespace {

TEST(Blame, FirstSymptomIsTheCulprit) {
  const std::vector<Symptom> symptoms{{.rank = 2, .error = "loss is NaN"},
                                      {.rank = 0, .error = "bad shape"}};
  EXPECT_EQ(FindCulprit(symptoms).rank, 2);
}

TEST(Blame, SkipsARankThatLostAPeer) {
  const std::vector<Symptom> symptoms{
      {.rank = 0, .error = "Connection closed by peer [127.0.0.1]:4242", .lost_peer = true},
      {.rank = 1, .exit = ExitStatus{.signal = SIGSEGV}}};
  EXPECT_EQ(FindCulprit(symptoms).rank, 1);
}

TEST(Blame, ConnectionErrorsInTheTextDoNotMakeARankAVictim) {
  const std::vector<Symptom> symptoms{{.rank = 1, .error = "S3: Connection refused"},
                                      {.rank = 0, .error = "it is gone", .lost_peer = true}};
  EXPECT_EQ(FindCulprit(symptoms).rank, 1);
}

TEST(Blame, NamesTheFirstRankIfAllLostAPeer) {
  const std::vector<Symptom> symptoms{{.rank = 3, .error = "it is gone", .lost_peer = true},
                                      {.rank = 1, .error = "it is gone", .lost_peer = true}};
  EXPECT_EQ(FindCulprit(symptoms).rank, 3);
}

TEST(Blame, PrefersTheErrorTextToTheExitCode) {
  const Failure failure =
      DescribeFailure({.rank = 1, .error = "no such file", .exit = ExitStatus{.exit_code = 1}});
  EXPECT_EQ(failure.message, "rank 1: no such file");
  EXPECT_EQ(failure.exit_code, 1);
}

}  // namespace
}  // namespace attune::gang

// Tests of the answers about failures and lineage of a sweep.

#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using FailuresRouteTest = HttpFixture;

TEST_F(FailuresRouteTest, FailuresAreGroupedByMessage) {
  const Json failures = GetJson("/api/v1/sweeps/s1/failures");
  const Json& first = failures.at("first");
  EXPECT_EQ(first.at("trial"), 0);
  EXPECT_EQ(first.at("attempt"), 1);
  EXPECT_EQ(first.at("rank"), 1);
  EXPECT_EQ(first.at("failure"), "rank 1 was killed by signal 9 (SIGKILL)\nepoch 4\nout of memory");
  int64_t attempts = failures.at("ungrouped");
  for (const Json& group : failures.at("groups")) {
    attempts += group.at("attempts").get<int64_t>();
    if (group.at("kind") != "signal") continue;
    EXPECT_EQ(group.at("pattern"), "rank N was killed by signal 9 (SIGKILL)");
    EXPECT_EQ(group.at("some_trials"), Json::array({0}));
    EXPECT_EQ(group.at("first").at("failure"), "rank 1 was killed by signal 9 (SIGKILL)");
  }
  EXPECT_EQ(failures.at("attempts"), attempts);
}

TEST_F(FailuresRouteTest, LineageIsListedInPages) {
  for (int i = 0; i < 3; ++i)
    backend_.Add(TrialPromoted{.trial = {SweepId(1), TrialNumber(2)},
                               .reason = {.rule = "asha", .rung = Step(1)}});
  size_t branches = 0;
  std::string token;
  do {
    const Json page = GetJson("/api/v1/sweeps/s1/lineage?page_size=2&page_token=" + token);
    for (const Json& branch : page.at("branches")) {
      EXPECT_EQ(branch.at("trial"), 2);
      EXPECT_EQ(branch.at("donor"), nullptr);
    }
    branches += page.at("branches").size();
    token = page.at("next_page_token");
  } while (!token.empty());
  EXPECT_EQ(branches, 3U);
}

TEST_F(FailuresRouteTest, AnUnknownSweepIsNotFound) {
  GetJson("/api/v1/sweeps/s99/failures", 404);
  GetJson("/api/v1/sweeps/s99/lineage", 404);
  GetJson("/api/v1/sweeps/s1/lineage?page_size=0", 400);
}

}  // namespace
}  // namespace attune::server

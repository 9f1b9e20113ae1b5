#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweeps = "/api/v1/sweeps?directory=/opt&file=later.yaml";

// Of the sample log's sweep s1, which searches lr from 0.001 to 0.5 for the best accuracy.
std::string Later(const std::string& from, double max, const std::string& mode = "max") {
  return "name: later\ncommand: [/bin/true]\nmetric: {name: accuracy, mode: " + mode +
         "}\nparameters:\n  lr: {min: 0.001, max: " + std::to_string(max) +
         ", scale: log}\nsearcher: {name: random}\nwarm_start: [" + from +
         "]\nscheduler: {name: asha, max: 9}\nstop: {max_trials: 4}\n";
}

class WarmStartApi : public HttpFixture {
 protected:
  Json Refused(const std::string& file) { return PostJson(kSweeps, file, 422).at("errors").at(0); }
};

TEST_F(WarmStartApi, SaysWhatWasTakenOfAnEarlierSweep) {
  const Json sweep = PostJson(kSweeps, Later("s1", 0.0011), 201);
  EXPECT_EQ(sweep.at("warm_start"), Json::array({"1 of 3 results of s1; 2 outside of lr"}));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("warm_start"), sweep.at("warm_start"));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1").at("warm_start"), Json::array());
}

TEST_F(WarmStartApi, NamesASweepThatIsNotThereWithItsPlace) {
  const Json error = Refused(Later("s77", 0.5));
  EXPECT_EQ(error.at("pointer"), "/warm_start");
  EXPECT_EQ(error.at("line"), 7);
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("there is no sweep s77 here"));
}

TEST_F(WarmStartApi, RefusesTheOppositeGoal) {
  EXPECT_THAT(Refused(Later("s1", 0.5, "min")).at("message").get<std::string>(),
              HasSubstr("s1 maximises accuracy"));
}

}  // namespace
}  // namespace attune::server

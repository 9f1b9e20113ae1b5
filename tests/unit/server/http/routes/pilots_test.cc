#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http/routes/fleet/pilots.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json Hours() {
  const Json amount = {{"nodes", 1.5}, {"cpus", 96}, {"gpus", 12}};
  return {{"allocated", amount}, {"in_use", amount}, {"idle", amount}, {"unobserved", amount}};
}

Json Report(const std::string& fleet = "91c07ab2") {
  return {{"fleet", fleet},
          {"system", "Slurm"},
          {"host", "login1"},
          {"partition", "gpu"},
          {"poll_seconds", 5},
          {"nodes_min", 0},
          {"nodes_max", 8},
          {"nodes_per_pilot", 2},
          {"pilots",
           {{{"name", "attune-91c07ab2-1"},
             {"job", "841"},
             {"state", "PENDING"},
             {"reason", "Priority"},
             {"node_list", ""},
             {"end_time", "N/A"},
             {"nodes", 2},
             {"ran_seconds", 0},
             {"executors", Json::array()}}}},
          {"blockers", {{{"sweep", ""}, {"text", "1 pilot is PENDING (Priority)"}}}},
          {"hours", Hours()}};
}

class PilotsAnswers : public ::testing::Test {
 protected:
  Response Tell(const std::string& body) { return pilots_.Report({.body = body}, {}); }
  std::string RefusalOf(const Json& report) {
    const Response answer = Tell(report.dump());
    EXPECT_EQ(answer.status, 422);
    return answer.body;
  }
  Json Fleets() { return Json::parse(pilots_.List({}, {}).body)["fleets"]; }

  Pilots pilots_;
};

TEST_F(PilotsAnswers, ShowTheLastReportOfEachManager) {
  EXPECT_EQ(Fleets(), Json::array());
  EXPECT_EQ(Tell(Report().dump()).status, 200);
  Json next = Report();
  next["pilots"][0]["state"] = "RUNNING";
  EXPECT_EQ(Tell(next.dump()).status, 200);
  Json fleets = Fleets();
  ASSERT_EQ(fleets.size(), 1u);
  EXPECT_FALSE(fleets[0]["stale"].get<bool>());
  EXPECT_LT(fleets[0]["seconds_since_report"].get<double>(), 15);
  fleets[0].erase("stale");
  fleets[0].erase("seconds_since_report");
  EXPECT_EQ(rest::ToJson(*rest::Parse<rest::FleetReport>(fleets[0])),
            rest::ToJson(*rest::Parse<rest::FleetReport>(next)));
}

TEST_F(PilotsAnswers, KeepOnlyKnownMembersOfAReport) {
  Json report = Report();
  report["stale"] = "no";
  report["pilots"][0]["more"] = std::string(1'000, 'x');
  EXPECT_EQ(Tell(report.dump()).status, 200);
  const Json fleets = Fleets();
  EXPECT_FALSE(fleets[0]["stale"].get<bool>());
  EXPECT_FALSE(fleets[0]["pilots"][0].contains("more"));
}

TEST_F(PilotsAnswers, RefuseAnInvalidReportAndNameThePlace) {
  EXPECT_EQ(Tell("what").status, 400);
  EXPECT_EQ(Tell("").status, 400);
  EXPECT_THAT(RefusalOf(Json::array()), HasSubstr("object"));
  EXPECT_THAT(RefusalOf(Json::object()), HasSubstr("fleet"));
  EXPECT_THAT(RefusalOf(Report("")), HasSubstr("fleet"));
  Json report = Report();
  report["pilots"][0]["nodes"] = "two";
  EXPECT_THAT(RefusalOf(report), HasSubstr("pilots[0].nodes"));
  report = Report();
  report["pilots"][0]["executors"] = {3};
  EXPECT_THAT(RefusalOf(report), HasSubstr("pilots[0].executors[0]"));
  report = Report();
  report["hours"]["idle"]["gpus"] = -1;
  EXPECT_THAT(RefusalOf(report), HasSubstr("hours.idle.gpus"));
  report = Report();
  report["host"] = std::string(5'000, 'x');
  EXPECT_THAT(RefusalOf(report), HasSubstr("host"));
  EXPECT_EQ(Fleets(), Json::array());
}

TEST_F(PilotsAnswers, ForgetTheFleetWithTheOldestReport) {
  for (size_t i = 0; i <= kFleetsMax; ++i) Tell(Report("f" + std::to_string(100 + i)).dump());
  const Json fleets = Fleets();
  EXPECT_EQ(fleets.size(), kFleetsMax);
  EXPECT_EQ(fleets[0]["fleet"], "f101");
}

TEST_F(PilotsAnswers, BlockersAreShownForTheirSweeps) {
  EXPECT_EQ(pilots_.WhyNoPilots(SweepId(1)), "");
  Json report = Report();
  const std::string blocker = "a gang is too large";
  report["blockers"].push_back({{"sweep", "s2"}, {"text", blocker}});
  Tell(report.dump());
  const std::string waits = pilots_.WhyNoPilots(SweepId(1));
  EXPECT_THAT(waits, AllOf(StartsWith("; Slurm: 1 pilot "), EndsWith(" PENDING (Priority)")));
  EXPECT_EQ(pilots_.WhyNoPilots(SweepId(2)), waits + "; Slurm: " + blocker);
}

}  // namespace
}  // namespace attune::server

#include "server/http/answers/render.h"
#include "tests/support/mentions.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

class EnvironmentTest : public HttpFixture {
 protected:
  void Record(const std::string& record) {
    backend_.Add(EnvironmentRecorded{SweepId(1), "box", record});
  }
};

TEST_F(EnvironmentTest, AnAttemptHasTheRecordsOfItsExecutors) {
  const Json record = Json::parse(R"({
      "attune": "0.1.0",
      "python": {"executable": "/usr/bin/python3", "version": "3.11.7",
                 "packages": {"torch": "2.2.0"}},
      "git": {"commit": "0f3a", "dirty": true},
      "gpu": {"driver": "535.104.05", "models": ["NVIDIA H200"]},
      "cpu": "EPYC", "kernel": "Linux 6.1.0", "os": "Debian", "libc": "glibc 2.36"})");
  Record(record.dump());
  const Json environment = GetJson("/api/v1/sweeps/s1/trials/0/environment");
  EXPECT_EQ(environment.at("attempt"), 2);
  ASSERT_EQ(environment.at("executors").size(), 1u);
  EXPECT_EQ(environment.at("executors")[0].at("executor"), "box");
  EXPECT_TRUE(environment.at("executors")[0].at("recorded").is_string());
  EXPECT_EQ(environment.at("executors")[0].at("record"), record);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1/trials/0/environment?attempt=1").at("attempt"), 1);
}

TEST_F(EnvironmentTest, AnAttemptWithoutRecordsHasNoExecutors) {
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1/trials/0/environment").at("executors"), Json::array());
}

TEST_F(EnvironmentTest, ARecordMayLackMembersOrHaveUnknownOnes) {
  Record(R"({"attune": "0.1.0", "weather": "fine"})");
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1/trials/0/environment").at("executors")[0].at("record"),
            Json({{"attune", "0.1.0"}}));
}

TEST_F(EnvironmentTest, RecordsWithAnotherFormAreLeftOut) {
  AttemptEnvironment environment;
  for (const char* record : {"", "{", "[]", R"({"attune": 1})", R"({"python": "3"})", "{}"})
    environment.executors.push_back({record, "2026-11-21T10:00:00.000000Z", record});
  const rest::AttemptEnvironment rendered = RenderEnvironment(environment);
  ASSERT_EQ(rendered.executors.size(), 1u);
  EXPECT_EQ(rendered.executors[0].executor, "{}");
}

TEST_F(EnvironmentTest, UnknownTrialsAndAttemptsAreNotFound) {
  GetJson("/api/v1/sweeps/s1/trials/99/environment", 404);
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials/0/environment?attempt=3", 404).at("detail"),
              testing::Mentions("s1/0", "attempt 3"));
  for (const std::string attempt : {"0", "-1", "many", "4294967296"})
    GetJson("/api/v1/sweeps/s1/trials/0/environment?attempt=" + attempt, 400);
}

}  // namespace
}  // namespace attune::server

#include <string>
#include <utility>

#include "base/result.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweepFile = R"(name: tiny
command: [/bin/true]
metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.1, scale: log}
initial_points: [{lr: 0.01}]
searcher: {name: random, seed: 7}
scheduler: {name: asha, max: 9}
)";
constexpr const char* kHere = "?directory=/opt&file=tiny.yaml";

using ServiceTest = HttpFixture;

TEST_F(ServiceTest, MissingThingsAre404) {
  for (const std::string path :
       {"/api/v1/sweeps/s9", "/api/v1/sweeps/1", "/api/v1/sweeps/s9/trials",
        "/api/v1/sweeps/s1/trials/99", "/api/v1/sweeps/s1/trials/x", "/api/v1/sweeps/s9/curves",
        "/api/v1/sweeps/s9/curves?metric=loss", "/api/v1/nothing", "/api/v2/sweeps", "/api",
        "/api/v1/events?sweep=s9", "/api/v1/sweeps/s18446744073709551615",
        "/api/v1/sweeps/s1/trials/4294967295", "/api/v1/sweeps/s1/trials/99/logs"})
    GetJson(path, 404);
  PostJson("/api/v1/sweeps/s1:dance", "", 404);
}

TEST_F(ServiceTest, AWrongMethodGetsTheAllowedOnes) {
  const auto answer = client_->Delete("/api/v1/sweeps");
  Parsed(answer, 405);
  EXPECT_EQ(answer->get_header_value("Allow"), "GET, HEAD, POST");
  Parsed(client_->Get("/api/v1/sweeps/s1:stop"), 405);
  Parsed(client_->Post("/livez"), 405);
  Parsed(client_->Post("/"), 405);
  Parsed(client_->Put("/sweeps/s1", "x", "text/plain"), 405);
}

TEST_F(ServiceTest, TheBackendsRefusalsBecomeStatuses) {
  const std::vector<std::pair<ErrorCode, int>> statuses = {
      {ErrorCode::kNotFound, 404},    {ErrorCode::kConflict, 409}, {ErrorCode::kUnavailable, 503},
      {ErrorCode::kStorageFull, 507}, {ErrorCode::kInternal, 500}, {ErrorCode::kCorrupt, 500}};
  for (const auto& [code, status] : statuses) {
    backend_.refusal = Error{code, "because"};
    EXPECT_EQ(PostJson("/api/v1/sweeps/s1:stop", "", status).at("detail"), "because");
    PostJson(std::string("/api/v1/sweeps") + kHere, kSweepFile, status);
  }
  backend_.refusal = Error{ErrorCode::kInvalid, "parameters.lr: grid search needs a step"};
  PostJson(std::string("/api/v1/sweeps") + kHere, kSweepFile, 422);
}

TEST_F(ServiceTest, ExecutorsShowTheirFreeResources) {
  EXPECT_EQ(GetJson("/api/v1/executors").dump(),
            R"({"executors":[{"name":"box","state":"online","address":"127.0.0.1","labels":{},)"
            R"("cpus":2,"cpus_free":1,"gpus":0,"gpus_free":0,"memory_bytes":25165824000,)"
            R"("memory_free_bytes":0,"running":[],"drain":null,"health_problem":null,)"
            R"("storage_problem":"","quarantine":null,"disk_free_bytes":null,)"
            R"("memory_available_bytes":null,"seconds_since_heartbeat":null}]})");
}

TEST_F(ServiceTest, DemandListsGangsWithoutSlots) {
  const Json demand = GetJson("/api/v1/demand").at("demand");
  ASSERT_EQ(demand.size(), 1u);
  const Json sweep = GetJson("/api/v1/sweeps/s1");
  EXPECT_EQ(demand[0].at("sweep"), "s1");
  EXPECT_EQ(demand[0].at("workers"), sweep.at("workers"));
  EXPECT_EQ(demand[0].at("min_workers"), sweep.at("workers"));
  EXPECT_EQ(demand[0].at("reason"), sweep.at("waiting_reason"));
  EXPECT_GT(demand[0].at("gangs"), 0);
  EXPECT_EQ(demand[0].at("can_start"), false) << demand[0].at("reason");
  EXPECT_EQ(demand[0].at("cpus_per_worker"), 1);
  EXPECT_EQ(demand[0].at("gpus_per_worker"), 0);
  EXPECT_EQ(demand[0].at("memory_per_worker"), 0);
}

TEST_F(ServiceTest, AStartingServerIsLiveAndReportsItsProgress) {
  const Error starting{ErrorCode::kUnavailable, "it has read 5 of the 9 events of its log"};
  backend_.starting = starting;
  backend_.refusal = starting;
  EXPECT_EQ(client_->Get("/livez")->status, 200);
  EXPECT_EQ(client_->Get("/version")->status, 200);
  for (const char* path : {"/readyz", "/api/v1/sweeps", "/api/v1/sweeps/s1", "/api/v1/events"}) {
    const auto answer = client_->Get(path);
    EXPECT_EQ(answer->status, 503) << path;
    EXPECT_EQ(answer->get_header_value("Retry-After"), "1") << path;
    EXPECT_NE(answer->body.find(starting.message), std::string::npos) << path;
  }
}

TEST_F(ServiceTest, HealthNeedsNoToken) {
  client_->set_default_headers({});
  EXPECT_EQ(client_->Get("/livez")->status, 200);
  EXPECT_EQ(client_->Get("/readyz")->status, 200);
  const auto version = GetJson("/version");
  EXPECT_EQ(version.at("version"), "0.1.0");
  EXPECT_EQ(version.at("api"), "v1");
  EXPECT_TRUE(version.at("time").is_string());
  backend_.refusal = Error{ErrorCode::kStorageFull, "the disk is full"};
  EXPECT_EQ(GetJson("/readyz", 503).at("detail"), "the disk is full");
}

TEST_F(ServiceTest, MetricsAreInPrometheusForm) {
  const auto answer = client_->Get("/api/v1/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  for (const std::string line :
       {"# TYPE attune_trials gauge\n", "attune_trials{state=\"completed\"} 1.0\n",
        "attune_sweeps{state=\"running\"} ", "attune_ready 1.0\n",
        "attune_executor_cpus{executor=\"box\",state=\"used\"} 1.0\n"})
    EXPECT_THAT(answer->body, HasSubstr(line));
}

TEST_F(ServiceTest, MetricsCountExecutorsInEveryState) {
  for (const char* name : {"full", "broken"})
    backend_.Add(ExecutorJoined{.name = name, .incarnation = Incarnation(7)});
  backend_.Add(ExecutorHealth{"full", "its disk is full"});
  backend_.Add(ExecutorQuarantined{"broken", "gangs fail there", Time{kSampleStart}});
  const std::string metrics = client_->Get("/api/v1/metrics")->body;
  for (const char* state : {"online", "unhealthy", "quarantined"})
    EXPECT_THAT(metrics, HasSubstr("attune_executors{state=\"" + std::string(state) + "\"} 1.0\n"));
}

}  // namespace
}  // namespace attune::server

#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class UsageRoutesTest : public HttpFixture {
 protected:
  static constexpr double kSecond = 1.0 / 3600;
};

TEST_F(UsageRoutesTest, CostAddsUpTheAttemptsOfASweep) {
  const Json cost = GetJson("/api/v1/sweeps/s1/cost");
  EXPECT_EQ(cost.at("sweep"), "s1");
  EXPECT_EQ(cost.at("resource"), "gpu");
  EXPECT_NEAR(cost.at("used_hours"), 22 * kSecond, 1e-9);
  EXPECT_NEAR(cost.at("wasted_hours"), (2 + 3) * kSecond, 1e-9)
      << "trial 0 after its checkpoint, and trial 3, which was lost";
  EXPECT_NEAR(cost.at("saved_hours"), 8 * kSecond, 1e-9) << "trial 1 stopped at step 1 of 9";
  EXPECT_EQ(cost.at("attempts"), 5);
  EXPECT_EQ(cost.at("running"), 0);
  EXPECT_EQ(cost.at("broken"), 2);
  EXPECT_EQ(cost.at("stopped"), 1);
  EXPECT_TRUE(cost.at("price").is_null());
}

TEST_F(UsageRoutesTest, CostIsAlsoInMoneyIfThereIsAPrice) {
  HttpServer::Options options = ServerOptions();
  options.gpu_hour_price = GpuHourPrice{.amount = 36, .currency = "EUR"};
  server_.reset();
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  const Json price = GetJson("/api/v1/sweeps/s1/cost").at("price");
  EXPECT_EQ(price.at("gpu_hour"), 36);
  EXPECT_EQ(price.at("currency"), "EUR");
  EXPECT_NEAR(price.at("used"), 0.22, 1e-9);
  EXPECT_NEAR(price.at("wasted"), 0.05, 1e-9);
  EXPECT_NEAR(price.at("saved"), 0.08, 1e-9);
}

TEST_F(UsageRoutesTest, CostOfAnUnknownSweepIsNotFound) { GetJson("/api/v1/sweeps/s9/cost", 404); }

TEST_F(UsageRoutesTest, TheTimelineListsAttemptsWithTheirSlots) {
  const std::string period = "?since=2026-11-21T10:00:00Z&until=2026-11-21T10:00:12Z";
  const Json timeline = GetJson("/api/v1/timeline" + period);
  EXPECT_EQ(timeline.at("since"), "2026-11-21T10:00:00.000000Z");
  EXPECT_EQ(timeline.at("more"), false);
  ASSERT_EQ(timeline.at("attempts").size(), 1u);
  const Json& held = timeline.at("attempts")[0];
  EXPECT_EQ(held.at("sweep"), "s1");
  EXPECT_EQ(held.at("sweep_name"), "fashion-mnist");
  EXPECT_EQ(held.at("trial"), 0);
  EXPECT_EQ(held.at("attempt"), 1);
  EXPECT_EQ(held.at("outcome"), "failed");
  EXPECT_EQ(held.at("begin"), "2026-11-21T10:00:04.000000Z");
  EXPECT_EQ(held.at("end"), "2026-11-21T10:00:11.000000Z");
  EXPECT_EQ(held.at("ranks")[1].dump(), R"({"rank":1,"executor":"box","cpus":1,"gpus":[0]})");
  EXPECT_EQ(GetJson("/api/v1/timeline" + period + "&executor=other").at("attempts").size(), 0u);
}

TEST_F(UsageRoutesTest, TheTimelineIsBounded) {
  const std::string since = "/api/v1/timeline?since=2026-11-21T10:00:00Z";
  const Json timeline = GetJson(since + "&limit=2");
  EXPECT_EQ(timeline.at("attempts").size(), 2u);
  EXPECT_EQ(timeline.at("more"), true);
  GetJson(since + "&limit=5001", 400);
  EXPECT_EQ(GetJson("/api/v1/timeline").at("attempts").size(), 0u) << "the last hour";
}

TEST_F(UsageRoutesTest, TheTimelineRefusesOtherTimes) {
  EXPECT_THAT(GetJson("/api/v1/timeline?since=yesterday", 400).at("detail").get<std::string>(),
              HasSubstr("since: 'yesterday'"));
  EXPECT_THAT(GetJson("/api/v1/timeline?since=2026-11-21T10:00:00Z&until=2026-11-21T10:00:00Z", 400)
                  .at("detail")
                  .get<std::string>(),
              HasSubstr("until"));
}

TEST_F(UsageRoutesTest, OccupancyIsTheShareOfTimeSinceTheJoin) {
  const Json list = GetJson("/api/v1/occupancy").at("executors");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].at("executor"), "box");
  EXPECT_EQ(list[0].at("joined"), "2026-11-21T10:00:01.000000Z");
  EXPECT_EQ(list[0].at("lost"), "2026-11-21T10:00:36.000000Z");
  EXPECT_NEAR(list[0].at("share").at("joined"), 22.0 / 35, 1e-9);
  EXPECT_TRUE(list[0].at("share").at("hour").is_null()) << "it was lost before";
  EXPECT_TRUE(list[0].at("gpus").empty());
}

TEST_F(UsageRoutesTest, TheQueueListsTrialsThatWait) {
  const Json queue = GetJson("/api/v1/queue");
  EXPECT_EQ(queue.at("total_size"), 1);
  EXPECT_EQ(queue.at("next_page_token"), "");
  ASSERT_EQ(queue.at("gangs").size(), 1u);
  const Json& gang = queue.at("gangs")[0];
  EXPECT_EQ(gang.at("place"), 1);
  EXPECT_EQ(gang.at("sweep"), "s1");
  EXPECT_EQ(gang.at("sweep_name"), "fashion-mnist");
  EXPECT_EQ(gang.at("trial"), 3);
  EXPECT_EQ(gang.at("ready"), true);
  EXPECT_EQ(gang.at("workers"), 2);
  EXPECT_EQ(gang.at("reason"), GetJson("/api/v1/sweeps/s1/trials/3").at("waiting_reason"));
}

TEST_F(UsageRoutesTest, TheQueueIsReadInPages) {
  for (uint32_t number = 4; number < 7; ++number)
    backend_.Add(TrialCreated{{SweepId(1), TrialNumber(number)}, SampleConfig(0.1), "enqueued"});
  const Json first = GetJson("/api/v1/queue?page_size=3");
  ASSERT_EQ(first.at("gangs").size(), 3u);
  const Json second = GetJson("/api/v1/queue?page_size=3&page_token=" +
                              first.at("next_page_token").get<std::string>());
  ASSERT_EQ(second.at("gangs").size(), 1u);
  EXPECT_EQ(second.at("gangs")[0].at("place"), 4);
  EXPECT_EQ(second.at("gangs")[0].at("trial"), 6);
  EXPECT_EQ(second.at("next_page_token"), "");
  GetJson("/api/v1/queue?page_token=x", 400);
  GetJson("/api/v1/queue?page_size=501", 400);
}

}  // namespace
}  // namespace attune::server

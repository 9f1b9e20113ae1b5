// Tests of the commands about activity, cost, occupancy and the queue.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

rest::SweepCost MakeCost() {
  return {.sweep = "s1",
          .resource = "gpu",
          .used_hours = 12.5,
          .wasted_hours = 1.25,
          .saved_hours = 40,
          .attempts = 9,
          .running = 2,
          .broken = 3,
          .stopped = 5};
}

class UsageCommands : public ::testing::Test {
 protected:
  UsageCommands() {
    server_.WriteTo(folder_.path());
    server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
  }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args);
  }

  FakeServer server_;
  ScratchFolder folder_;
};

TEST_F(UsageCommands, SweepGetHasALineAboutCost) {
  EXPECT_THAT(Attune({"sweep", "get", "s1"}).out, Not(HasSubstr("\ncost"))) << "no answer";
  rest::SweepCost cost = MakeCost();
  server_.Answer("/sweeps/s1/cost", rest::ToJson(cost));
  EXPECT_THAT(
      Attune({"sweep", "get", "s1"}).out,
      HasSubstr("\ncost        12.5 GPU hours used; 1.25 wasted; about 40 saved by stopping "
                "trials early\n"));
  cost.resource = "worker";
  cost.wasted_hours = 0;
  cost.saved_hours = std::nullopt;
  server_.Answer("/sweeps/s1/cost", rest::ToJson(cost));
  EXPECT_THAT(Attune({"sweep", "get", "s1"}).out,
              HasSubstr("\ncost        12.5 worker hours used\n"));
}

TEST_F(UsageCommands, SweepCostShowsHoursAndMoney) {
  rest::SweepCost cost = MakeCost();
  cost.price = {.gpu_hour = 2, .currency = "EUR", .used = 25, .wasted = 2.5, .saved = 80};
  server_.Answer("/sweeps/s1/cost", rest::ToJson(cost));
  EXPECT_EQ(
      Attune({"sweep", "cost", "s1"}).out,
      "used        12.5 GPU hours, 25.00 EUR in 9 attempts, 2 running\n"
      "wasted      1.25 GPU hours, 2.50 EUR after the last used checkpoint; 3 failed or lost\n"
      "saved       40 GPU hours, 80.00 EUR by stopping 5 trials early (estimate)\n");
  EXPECT_EQ(Json::parse(Attune({"sweep", "cost", "s1", "-o", "json"}).out)["attempts"], 9);
}

TEST_F(UsageCommands, SweepCostWithoutALastStepHasNoSavedHours) {
  rest::SweepCost cost = MakeCost();
  cost.saved_hours = std::nullopt;
  server_.Answer("/sweeps/s1/cost", rest::ToJson(cost));
  EXPECT_THAT(Attune({"sweep", "cost", "s1"}).out, HasSubstr("saved       unknown;"));
}

TEST_F(UsageCommands, ExecutorOccupancyShowsEachGpu) {
  const rest::OccupancyList list{
      .executors = {{.executor = "box",
                     .share = {.hour = 0.5, .day = 0.25, .joined = std::nullopt},
                     .gpus = {{.hour = 1, .day = 0.5}, {.hour = 0, .day = 0}}},
                    {.executor = "den", .share = {.hour = 0.125}}}};
  server_.Answer("/occupancy", rest::ToJson(list));
  EXPECT_EQ(Attune({"executor", "occupancy"}).out,
            "EXECUTOR  SLOTS     HOUR  DAY  SINCE JOIN\n"
            "box       all GPUs   50%  25%            \n"
            "box       GPU 0     100%  50%            \n"
            "box       GPU 1       0%   0%            \n"
            "den       CPUs       13%                 \n");
}

TEST_F(UsageCommands, QueueListsPlacesAndReasons) {
  rest::Queue queue{.total_size = 3};
  queue.gangs = {{.place = 1,
                  .sweep = "s2",
                  .owner = "ada",
                  .trial = 7,
                  .gangs = 1,
                  .ready = true,
                  .priority = 2,
                  .share = 0.5,
                  .workers = 4,
                  .gpus_per_worker = 1,
                  .reason = "needs 4 GPUs"},
                 {.place = 2,
                  .sweep = "s1",
                  .owner = "bob",
                  .gangs = 12,
                  .ready = false,
                  .workers = 1,
                  .cpus_per_worker = 2,
                  .reason = "its sweep is paused"}};
  server_.Answer("/queue?page_size=100", rest::ToJson(queue));
  const Ran ran = Attune({"queue"});
  EXPECT_EQ(ran.out,
            "PLACE  TRIAL      NEEDS      PRIORITY  SHARE  OWNER  REASON\n"
            "    1  s2/7       4 x 1 GPU         2    50%  ada    needs 4 GPUs\n"
            "       s1 12 new  2 CPU             0     0%  bob    its sweep is paused\n");
  EXPECT_THAT(ran.err, HasSubstr("1 more"));
}

TEST_F(UsageCommands, QueueSaysThatNothingWaits) {
  server_.Answer("/queue?page_size=100", rest::ToJson(rest::Queue{}));
  EXPECT_THAT(Attune({"queue"}).err, HasSubstr("nothing waits"));
}

TEST_F(UsageCommands, ActivityListsActionsOfUsers) {
  rest::Activity activity{.next_page_token = "older"};
  activity.actions = {{.seq = 9,
                       .time = "2026-11-29T10:00:01.000000Z",
                       .actor = "ada",
                       .action = "edit",
                       .detail = "priority 3 (was 0)"},
                      {.seq = 7,
                       .time = "2026-11-29T10:00:00.000000Z",
                       .actor = "admin",
                       .action = "kill",
                       .trial = 12}};
  server_.Answer("/sweeps/s1/activity?page_size=2", rest::ToJson(activity));
  const Ran ran = Attune({"sweep", "activity", "s1", "--limit", "2"});
  EXPECT_EQ(ran.out,
            "TIME                 ACTOR  ACTION  TRIAL  DETAIL\n"
            "2026-11-29T10:00:01  ada    edit           priority 3 (was 0)\n"
            "2026-11-29T10:00:00  admin  kill       12  \n");
  EXPECT_THAT(ran.err, HasSubstr("--limit"));
}

}  // namespace
}  // namespace attune::cli

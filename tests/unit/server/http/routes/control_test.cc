#include "base/result.h"
#include "tests/support/mentions.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweepFile = R"(name: two
command: [/bin/true]
metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.1, scale: log}
  layers: {min: 1, max: 4}
initial_points: [{lr: 0.01, layers: 1}, {lr: 0.02, layers: 2}]
searcher: {name: random}
scheduler: {name: asha, max: 9}
resources: {workers: 2}
)";

// The sample log and a sweep s2. Its trial 0 runs on the only executor, and its trial 1 waits.
class ControlTest : public HttpFixture {
 protected:
  ControlTest() {
    backend_.Add(ExecutorJoined{.name = "new",
                                .instance = "i2",
                                .incarnation = Incarnation(2),
                                .resources = {.cpus = 4}});  // s1 uses two of them
    PostJson("/api/v1/sweeps?directory=/opt", kSweepFile, 201);
    PostJson("/api/v1/sweeps/s2/trials", "{config: {lr: 0.03, layers: 3}}", 201);
  }

  Json Trial(int number) { return GetJson("/api/v1/sweeps/s2/trials/" + std::to_string(number)); }
};

TEST_F(ControlTest, PauseReturnsTheNumberOfTrialsThatLeave) {
  const Json sweep = PostJson("/api/v1/sweeps/s2:pause", "", 202);
  EXPECT_EQ(sweep.at("state"), "paused");
  EXPECT_THAT(sweep.at("effect"), HasSubstr("1 running trial"));
  EXPECT_NE(PostJson("/api/v1/sweeps/s2:pause", "", 202).at("effect"), sweep.at("effect"));
}

TEST_F(ControlTest, ATrialShowsWhyItWaits) {
  EXPECT_EQ(Trial(0).at("state"), "running");
  EXPECT_EQ(Trial(0).at("waiting_reason"), "");
  EXPECT_THAT(Trial(1).at("waiting_reason"), HasSubstr("CPU"));
  PostJson("/api/v1/sweeps/s2:pause", "", 202);
  EXPECT_THAT(Trial(1).at("waiting_reason"), HasSubstr("paused"));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2/trials").at("trials")[1].at("waiting_reason"),
            Trial(1).at("waiting_reason"));
}

TEST_F(ControlTest, ResumeContinuesPausedTrialsFirst) {
  PostJson("/api/v1/sweeps/s2:pause", "", 202);
  const Json sweep = PostJson("/api/v1/sweeps/s2:resume", "", 202);
  EXPECT_EQ(sweep.at("state"), "running");
  EXPECT_NE(PostJson("/api/v1/sweeps/s2:resume", "", 202).at("effect"), sweep.at("effect"));
}

TEST_F(ControlTest, StopLetsRunningTrialsFinish) {
  const Json sweep = PostJson("/api/v1/sweeps/s2:stop", "", 202);
  EXPECT_EQ(sweep.at("state"), "running");
  EXPECT_EQ(sweep.at("end_state"), "stopped");
  EXPECT_THAT(sweep.at("effect"), HasSubstr("1 running trial"));
  EXPECT_NE(PostJson("/api/v1/sweeps/s2:stop", "", 202).at("effect"), sweep.at("effect"));
}

TEST_F(ControlTest, KillEndsEveryTrial) {
  const Json sweep = PostJson("/api/v1/sweeps/s2:kill", "", 202);
  EXPECT_THAT(sweep.at("effect"), HasSubstr("2 trials"));
  EXPECT_EQ(sweep.at("trials").at("killed"), 2);
}

TEST_F(ControlTest, AnEndedSweepIsDeletedUnlessACheckpointOfItIsPinned) {
  EXPECT_THAT(Parsed(client_->Delete("/api/v1/sweeps/s2"), 409).at("detail"),
              HasSubstr("attune sweep kill s2"));
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"});
  PostJson("/api/v1/sweeps/s1/trials/0/checkpoints/1-3:pin", "", 202);
  EXPECT_THAT(Parsed(client_->Delete("/api/v1/sweeps/s1"), 409).at("detail"),
              HasSubstr("attune checkpoint unpin s1/0/1-3"));
  PostJson("/api/v1/sweeps/s1/trials/0/checkpoints/1-3:unpin", "", 202);
  const Json deleted = Parsed(client_->Delete("/api/v1/sweeps/s1"), 202);
  EXPECT_EQ(deleted.at("id"), "s1");
  EXPECT_EQ(deleted.at("state"), "deleted");
  EXPECT_THAT(deleted.at("effect"), HasSubstr("its files"));
  for (const std::string path : {"", "/trials", "/trials/0", "/curves", "/checkpoints"})
    GetJson("/api/v1/sweeps/s1" + path, 404);
  EXPECT_THAT(Parsed(client_->Delete("/api/v1/sweeps/s1"), 404).at("detail"), HasSubstr("deleted"));
  Parsed(client_->Delete("/api/v1/sweeps/s9"), 404);
}

TEST_F(ControlTest, ADeletionWithADelayCanBeUndone) {
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"});
  const std::string path = "/api/v1/sweeps/s1";
  EXPECT_FALSE(GetJson(path).contains("deletion"));
  const Json scheduled = Parsed(client_->Delete(path + "?delay=600"), 202);
  EXPECT_EQ(scheduled.at("state"), "scheduled");
  EXPECT_THAT(scheduled.at("effect"), HasSubstr("attune sweep undelete s1"));
  EXPECT_EQ(GetJson(path).at("deletion").at("actor"), "admin");
  EXPECT_EQ(GetJson("/api/v1/sweeps").at("sweeps").back().at("deletion").at("actor"), "admin");
  const Json again = Parsed(client_->Delete(path + "?delay=5"), 202);
  EXPECT_EQ(again.at("deletion").at("time"), scheduled.at("deletion").at("time"));
  EXPECT_THAT(PostJson(path + ":extend", R"({"max_trials": 50})", 409).at("detail"),
              HasSubstr("undelete"));

  EXPECT_THAT(PostJson(path + ":undelete", "", 202).at("effect"), HasSubstr("kept"));
  EXPECT_FALSE(GetJson(path).contains("deletion"));
  EXPECT_THAT(PostJson(path + ":undelete", "", 202).at("effect"), HasSubstr("nothing changes"));
  Parsed(client_->Delete(path + "?delay=600"), 202);
  EXPECT_EQ(Parsed(client_->Delete(path), 202).at("state"), "deleted");
  EXPECT_THAT(PostJson(path + ":undelete", "", 404).at("detail"), HasSubstr("already deleted"));
  for (const std::string delay : {"-1", "86401", "soon"})
    Parsed(client_->Delete("/api/v1/sweeps/s2?delay=" + delay), 400);
}

TEST_F(ControlTest, ADeletionWithADelayHappensWithoutAnotherRequest) {
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"});
  Parsed(client_->Delete("/api/v1/sweeps/s1?delay=10"), 202);
  // Both count from the last event.
  backend_.Wait(9'000'000);
  GetJson("/api/v1/sweeps/s1");
  backend_.Wait(11'000'000);
  GetJson("/api/v1/sweeps/s1", 404);
}

TEST_F(ControlTest, AnEndedSweepCannotBePaused) {
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"});
  EXPECT_THAT(PostJson("/api/v1/sweeps/s1:pause", "", 409).at("detail"), HasSubstr("s1"));
  PostJson("/api/v1/sweeps/s9:pause", "", 404);
}

TEST_F(ControlTest, ExtendSetsTheLimitsThatAreGiven) {
  const Json sweep =
      PostJson("/api/v1/sweeps/s2:extend", R"({"max_step": 27, "max_time": "2h"})", 202);
  EXPECT_THAT(sweep.at("effect").get<std::string>(),
              testing::Mentions("max_step 27", "max_time 2h"));
  EXPECT_EQ(sweep.at("max_step"), 27);
  EXPECT_EQ(sweep.at("limits").at("max_time"), 7200.0);
  EXPECT_THAT(PostJson("/api/v1/sweeps/s2:extend", R"({"max_time": "0s"})", 202).at("effect"),
              HasSubstr("no max_time"));
}

TEST_F(ControlTest, AnInvalidExtensionIsRefused) {
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2:extend", "", 422).at("errors")[0].at("pointer"),
            "/max_trials");
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2:extend", R"({"max_trials": -1})", 422)
                .at("errors")[0]
                .at("pointer"),
            "/max_trials");
  EXPECT_THAT(PostJson("/api/v1/sweeps/s2:extend", R"({"max_step": 3})", 422).at("detail"),
              HasSubstr("max_step: 3"));
  PostJson("/api/v1/sweeps/s2:extend", "{", 400);
}

TEST_F(ControlTest, AnExtensionNamesOnlyTheInvalidLimit) {
  const Json problem = PostJson("/api/v1/sweeps/s2:extend", R"({"max_time": 5})", 422);
  ASSERT_EQ(problem.at("errors").size(), 1u);
  EXPECT_EQ(problem["errors"][0].at("pointer"), "/max_time");
}

TEST_F(ControlTest, ActionsWithoutArgumentsRefuseABody) {
  for (const std::string path :
       {"s2:pause", "s2:resume", "s2:stop", "s2:kill", "s2/trials/0:kill",
        "s1/trials/0/checkpoints/1-3:pin", "s1/trials/0/checkpoints/1-3:unpin"}) {
    const Json problem = PostJson("/api/v1/sweeps/" + path, R"({"after": "2h"})", 422);
    EXPECT_EQ(problem.at("errors")[0].at("pointer"), "/after") << path;
    EXPECT_THAT(problem.at("errors")[0].at("message"), HasSubstr("unknown key"));
  }
  PostJson("/api/v1/executors/new:resume", R"({"after": "2h"})", 422);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("state"), "running");
  PostJson("/api/v1/sweeps/s2:pause", "{}", 202);
}

TEST_F(ControlTest, AnEditIsAMergePatchOfTheSweepFile) {
  const Json sweep =
      PostJson("/api/v1/sweeps/s2:edit", R"({"priority": 5, "stop": {"max_time": "2h"}})", 202);
  EXPECT_THAT(sweep.at("effect").get<std::string>(),
              testing::Mentions("priority 5", "stop.max_time 7200 s"));
  EXPECT_EQ(sweep.at("priority"), 5);
  EXPECT_EQ(sweep.at("limits").at("max_time"), 7200.0);
  EXPECT_EQ(sweep.at("edited").at("actor"), "admin");
  EXPECT_EQ(sweep.at("edited").at("changes")[0], "priority 5 (was 0)");
  EXPECT_THAT(sweep.at("resolved_file").get<std::string>(), HasSubstr("priority: 5"));
  EXPECT_THAT(sweep.at("resolved_file_as_sent").get<std::string>(),
              ::testing::Not(HasSubstr("priority: 5")));
  const Json again = PostJson("/api/v1/sweeps/s2:edit", R"({"priority": 5})", 202);
  EXPECT_THAT(again.at("effect"), ::testing::Not(HasSubstr("priority")));
  EXPECT_EQ(again.at("edited"), sweep.at("edited"));
}

TEST_F(ControlTest, ADryRunOfAnEditChangesNothing) {
  const std::string path = "/api/v1/sweeps/s2:edit?dry_run=";
  const Json previewed = PostJson(path + "true", R"({"priority": 5})", 200);
  EXPECT_THAT(previewed.at("effect"), HasSubstr("priority 5 (was 0)"));
  EXPECT_EQ(previewed.at("priority"), 0);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("priority"), 0);
  EXPECT_THAT(PostJson(path + "true", R"({"searcher": {"seed": 99}})", 422).at("detail"),
              HasSubstr("searcher.seed: "));
  PostJson(path + "maybe", R"({"priority": 5})", 400);
  EXPECT_EQ(PostJson(path + "false", R"({"priority": 5})", 202).at("priority"), 5);
}

TEST_F(ControlTest, ActivityHasTheActionsOfUsersNewestFirst) {
  PostJson("/api/v1/sweeps/s2:edit", R"({"priority": 5})", 202);
  PostJson("/api/v1/sweeps/s2/trials", R"({"config": {"lr": 0.05, "layers": 4}})", 201);
  PostJson("/api/v1/sweeps/s2/trials/2:kill", "", 202);
  PostJson("/api/v1/sweeps/s2:kill", "", 202);
  const Json page = GetJson("/api/v1/sweeps/s2/activity?page_size=3");
  const auto described = [&](const Json& action) {
    EXPECT_EQ(action.at("actor"), "admin");
    EXPECT_TRUE(action.at("time").is_string());
    return Json::array({action.at("action"), action.at("trial"), action.at("detail")});
  };
  ASSERT_EQ(page.at("actions").size(), 3u);
  EXPECT_EQ(described(page.at("actions")[0]), Json::array({"kill", nullptr, ""}));
  EXPECT_EQ(described(page.at("actions")[1]), Json::array({"kill", 2, ""}));
  EXPECT_EQ(described(page.at("actions")[2]),
            Json::array({"enqueue", 2, R"({"lr":0.05,"layers":4})"}));
  const std::string token = page.at("next_page_token");
  const Json older = GetJson("/api/v1/sweeps/s2/activity?page_size=1&page_token=" + token);
  EXPECT_EQ(described(older.at("actions")[0]),
            Json::array({"edit", nullptr, "priority 5 (was 0)"}));
  GetJson("/api/v1/sweeps/s99/activity", 404);
  GetJson("/api/v1/sweeps/s2/activity?page_size=0", 400);
}

TEST_F(ControlTest, AnInvalidEditIsRefusedWithItsKey) {
  const Json seed = PostJson("/api/v1/sweeps/s2:edit", R"({"searcher": {"seed": 99}})", 422);
  EXPECT_THAT(seed.at("detail"), HasSubstr("searcher.seed: "));
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2:edit", R"({"stop": {"max_trails": 4}})", 422)
                .at("errors")[0]
                .at("pointer"),
            "/stop/max_trails");
  PostJson("/api/v1/sweeps/s2:edit", "{", 400);
  PostJson("/api/v1/sweeps/s9:edit", "{}", 404);
}

TEST_F(ControlTest, AnEnqueuedTrialIsCreatedAndLocated) {
  const auto answer = client_->Post("/api/v1/sweeps/s2/trials",
                                    R"({"config": {"lr": 0.05, "layers": 4}})", "application/json");
  const Json trial = Parsed(answer, 201);
  EXPECT_EQ(answer->get_header_value("Location"), "/api/v1/sweeps/s2/trials/2");
  EXPECT_EQ(trial.at("number"), 2);
  EXPECT_EQ(trial.at("state"), "pending");
  EXPECT_EQ(trial.at("config").dump(), R"({"lr":0.05,"layers":4})");
}

TEST_F(ControlTest, ARepeatedKeyGivesTheFirstTrial) {
  const std::string body = R"({"config": {"lr": 0.05, "layers": 4}})";
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2/trials", body, 201, "k").at("number"), 2);
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2/trials", body, 201, "k").at("number"), 2);
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2/trials", body, 201).at("number"), 3);
}

TEST_F(ControlTest, AConfigurationOutsideTheSpaceNamesEachPlace) {
  const Json problem =
      PostJson("/api/v1/sweeps/s2/trials", R"({"config": {"lr": "much", "layer": 4}})", 422);
  ASSERT_EQ(problem.at("errors").size(), 2u);
  EXPECT_EQ(problem["errors"][0].at("pointer"), "/config/lr");
  EXPECT_EQ(problem["errors"][1].at("pointer"), "/config/layer");
  EXPECT_THAT(problem["errors"][1].at("message"), HasSubstr("layers?"));
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2/trials", R"({"config": {"lr": 7, "layers": 1}})", 422)
                .at("errors")[0]
                .at("pointer"),
            "/config/lr");
  PostJson("/api/v1/sweeps/s2/trials", "", 422);
}

TEST_F(ControlTest, AKilledTrialIsOver) {
  const Json trial = PostJson("/api/v1/sweeps/s2/trials/0:kill", "", 202);
  EXPECT_EQ(trial.at("state"), "killed");
  EXPECT_NE(trial.at("effect"), "");
  PostJson("/api/v1/sweeps/s2/trials/0:kill", "", 409);
  PostJson("/api/v1/sweeps/s2/trials/9:kill", "", 404);
}

TEST_F(ControlTest, AnEndedTrialIsRetried) {
  PostJson("/api/v1/sweeps/s2/trials/1:retry", "", 409);  // it has not ended yet
  PostJson("/api/v1/sweeps/s2/trials/1:kill", "", 202);
  const Json trial = PostJson("/api/v1/sweeps/s2/trials/1:retry", "", 202);
  EXPECT_EQ(trial.at("state"), "pending");
  EXPECT_THAT(trial.at("effect"), ::testing::Not(HasSubstr("step")));
}

TEST_F(ControlTest, ACompleteTrialResumesOrStartsAgain) {
  const std::string path = "/api/v1/sweeps/s1/trials/0";  // step 9, with a checkpoint of step 3
  PostJson(path + ":retry", "", 409);
  PostJson(path + ":continue", R"({"until": 9})", 422);
  PostJson(path + ":continue", "", 422);
  EXPECT_THAT(PostJson(path + ":continue", R"({"until": 81})", 202).at("effect").get<std::string>(),
              testing::Mentions("step 3", "step 81"));
  PostJson(path + ":kill", "", 202);
  EXPECT_THAT(PostJson(path + ":retry", R"({"from_start": true})", 202).at("effect"),
              ::testing::Not(HasSubstr("step")));
}

TEST_F(ControlTest, ARestartedTrialIgnoresItsOldCheckpoints) {
  const std::string path = "/api/v1/sweeps/s1/trials/0";  // has a pinned checkpoint of step 3
  PostJson(path + ":retry", R"({"from_start": true})", 202);
  PostJson(path + ":kill", "", 202);
  EXPECT_THAT(PostJson(path + ":retry", "", 202).at("effect"), ::testing::Not(HasSubstr("step")));
}

TEST_F(ControlTest, ACheckpointIsPinnedAndUnpinned) {
  const std::string path = "/api/v1/sweeps/s1/trials/0/checkpoints/";
  EXPECT_EQ(PostJson(path + "1-3:pin", "", 202).at("checkpoints")[0].at("pinned"), true);
  EXPECT_EQ(PostJson(path + "1-3:unpin", "", 202).at("checkpoints")[0].at("pinned"), false);
  PostJson(path + "1-4:pin", "", 404);
  PostJson(path + "2-3:pin", "", 404);
  for (const std::string name : {"1", "1-", "-3", "1-3x", "01-3", "1--3", "4294967296-3"})
    PostJson(path + name + ":pin", "", 404);
}

TEST_F(ControlTest, ACheckpointIsDroppedOnce) {
  const std::string path = "/api/v1/sweeps/s1/trials/0/checkpoints/1-3";
  PostJson(path + ":pin", "", 202);
  const Json pinned = Parsed(client_->Delete(path), 409);
  EXPECT_THAT(pinned.at("detail"), HasSubstr("attune checkpoint unpin s1/0/1-3"));
  PostJson(path + ":unpin", "", 202);
  const Json dropped = Parsed(client_->Delete(path), 202);
  EXPECT_THAT(dropped.at("reason"), HasSubstr("request"));
  EXPECT_NE(Parsed(client_->Delete(path), 200).at("effect"), dropped.at("effect"));
  Parsed(client_->Delete("/api/v1/sweeps/s1/trials/0/checkpoints/1-4"), 404);
}

TEST_F(ControlTest, TheBackendsRefusalsBecomeStatuses) {
  backend_.refusal = Error{ErrorCode::kStorageFull, "the disk is full"};
  for (const std::string path : {"s2:pause", "s2:resume", "s2:stop", "s2:kill", "s2/trials/0:kill",
                                 "s1/trials/1:retry", "s1/trials/0/checkpoints/1-3:pin"})
    EXPECT_EQ(PostJson("/api/v1/sweeps/" + path, "", 507).at("detail"), "the disk is full");
}

// Trial s2/0 runs with two workers on the executor "new", which has four CPUs.
TEST_F(ControlTest, ADrainDescribesTheFateOfRunningTrials) {
  const Json drained = PostJson("/api/v1/executors/new:drain", R"({"reason": "a new disk"})", 202);
  EXPECT_EQ(drained.at("state"), "draining");
  EXPECT_EQ(drained.at("drain").at("reason"), "a new disk");
  EXPECT_EQ(drained.at("drain").at("now"), false);
  const auto running = drained.at("running");
  ASSERT_FALSE(running.empty());
  EXPECT_EQ(running.back().dump(), R"({"sweep":"s2","trial":0,"attempt":1,"ranks":[0,1]})");
  EXPECT_THAT(drained.at("effect"), HasSubstr("finish"));
  EXPECT_THAT(Trial(1).at("waiting_reason").get<std::string>(),
              testing::Mentions("new", "drained"));

  const Json resumed = PostJson("/api/v1/executors/new:resume", "", 202);
  EXPECT_EQ(resumed.at("state"), "online");
  EXPECT_TRUE(resumed.at("drain").is_null());
  EXPECT_NE(PostJson("/api/v1/executors/new:resume", "", 202).at("effect"), resumed.at("effect"));
}

TEST_F(ControlTest, ADrainThatCannotMoveATrialSaysSo) {
  const Json drained = PostJson("/api/v1/executors/new:drain", R"({"now": true})", 202);
  EXPECT_THAT(drained.at("effect"), HasSubstr("elsewhere"));
}

TEST_F(ControlTest, AnUnknownExecutorAndAWrongBodyAreRefused) {
  EXPECT_THAT(PostJson("/api/v1/executors/boks:drain", "", 404).at("detail"), HasSubstr("boks"));
  EXPECT_EQ(PostJson("/api/v1/executors/new:drain", R"({"why": "x"})", 422).at("errors").size(),
            1u);
}

}  // namespace
}  // namespace attune::server

#include <string>
#include <utility>

#include "base/result.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
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

using SweepsTest = HttpFixture;

TEST_F(SweepsTest, ASweepIsShownAsDocumented) {
  const Json sweep = GetJson("/api/v1/sweeps/s1");
  EXPECT_EQ(sweep.at("id"), "s1");
  EXPECT_EQ(sweep.at("name"), "fashion-mnist");
  EXPECT_EQ(sweep.at("state"), "running");
  EXPECT_EQ(sweep.at("reason"), "stopped on request");
  EXPECT_EQ(sweep.at("created"), "2026-11-21T10:00:02.000000Z");
  EXPECT_TRUE(sweep.at("ended").is_null());
  EXPECT_EQ(sweep.at("metric").dump(), R"({"name":"accuracy","mode":"max"})");
  EXPECT_EQ(sweep.at("searcher"), "random");
  EXPECT_EQ(sweep.at("scheduler"), "asha");
  EXPECT_EQ(sweep.at("rungs").dump(), "[1,3,9]");
  EXPECT_EQ(sweep.at("max_step"), 9);
  EXPECT_EQ(sweep.at("max_trials"), 12);
  EXPECT_EQ(sweep.at("workers"), 2);
  EXPECT_EQ(sweep.at("min_workers"), 2) << "it is not elastic";
  EXPECT_EQ(
      sweep.at("trials").dump(),
      R"({"pending":1,"running":0,"paused":1,"completed":1,"stopped":1,"failed":0,"killed":0})");
  EXPECT_EQ(sweep.at("priority"), 0);
  EXPECT_EQ(sweep.at("external"), false);
  EXPECT_EQ(sweep.at("limits").dump(),
            R"({"target":null,"max_time":0.0,"max_gpu_hours":0.0,"patience":0,)"
            R"("max_trial_time":0.0,"trial_patience":0,"plateau":null,"threshold":{}})");
  EXPECT_EQ(sweep.at("end_state"), "stopped");
  EXPECT_THAT(sweep.at("waiting_reason"), HasSubstr("executor"));
  EXPECT_EQ(sweep.at("file"), "name: fashion-mnist # \"quoted\"\n");
  EXPECT_EQ(sweep.at("parameters").dump(),
            R"([{"name":"lr","type":"float","min":0.001,"max":0.5,"scale":"log"},)"
            R"({"name":"width","type":"int","min":8,"max":64,"scale":"linear","step":8},)"
            R"({"name":"optimizer","type":"categorical","values":["sgd","adamw"]},)"
            R"({"name":"batch","type":"constant","value":128},)"
            R"({"name":"momentum","type":"float","min":0.5,"max":0.99,"scale":"linear"}])");
}

TEST_F(SweepsTest, TheBestTrialComesWithItsConfigurationAndCheckpoint) {
  const Json best = GetJson("/api/v1/sweeps/s1").at("best");
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1").at("pareto_front"), Json::array({best}));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1").at("owner"), "admin");
  EXPECT_EQ(best.at("trial"), 0);
  EXPECT_EQ(best.at("step"), 9);
  EXPECT_EQ(best.at("value"), 0.871);
  EXPECT_EQ(best.at("config").at("lr"), 0.1);
  EXPECT_EQ(best.at("metrics").at("accuracy"), 0.871);
  EXPECT_EQ(best.at("checkpoint"), "/data/sweeps/s1/trials/0/checkpoints/step-3-attempt-1");
}

TEST_F(SweepsTest, TheFolderOfAFileMustBeAbsolute) {
  for (const std::string path : {"/api/v1/sweeps", "/api/v1/sweeps:validate"}) {
    EXPECT_THAT(PostJson(path + "?directory=opt", kSweepFile, 400).at("detail"),
                HasSubstr("directory: opt"));
    EXPECT_THAT(PostJson(path, kSweepFile, 422).at("errors")[0].at("message"),
                HasSubstr("`directory`"));
  }
}

TEST_F(SweepsTest, SweepsAreListedNewestFirstAndInPages) {
  for (uint64_t id = 2; id <= 5; ++id)
    backend_.Add(SweepCreated{.sweep = SweepId(id), .spec = SampleSpec(), .source = "x"});
  std::vector<std::string> ids;
  std::string token;
  do {
    const Json page = GetJson("/api/v1/sweeps?page_size=2&page_token=" + token);
    for (const Json& sweep : page.at("sweeps")) {
      ids.push_back(sweep.at("id"));
      EXPECT_FALSE(sweep.contains("file"));
      EXPECT_FALSE(sweep.contains("parameters"));
    }
    token = page.at("next_page_token");
  } while (!token.empty());
  EXPECT_THAT(ids, ElementsAre("s5", "s4", "s3", "s2", "s1"));
}

TEST_F(SweepsTest, ImportanceFindsTheParameterThatMatters) {
  const Json few = GetJson("/api/v1/sweeps/s1/importance");
  EXPECT_EQ(few.at("parameters"), Json::array());
  EXPECT_THAT(few.at("reason"), HasSubstr("20 "));

  for (uint32_t i = 0; i < 60; ++i) {
    const TrialId trial(SweepId(1), TrialNumber(4 + i));
    Config config = SampleConfig(0.001 + 0.008 * i);
    config.Set("width", int64_t{8 + 8 * (i * 5 % 8)});
    backend_.Add(TrialCreated{trial, config, "random"});
    backend_.Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20 + i)});
    backend_.Add(TrialReported{{trial, 1}, {.step = Step(1), .metrics = {{"accuracy", 0.01 * i}}}});
    backend_.Add(AttemptEnded{.attempt = {trial, 1}, .outcome = Outcome::kFinished});
    backend_.Add(TrialEnded{trial, TrialState::kCompleted, ""});
  }
  const Json importance = GetJson("/api/v1/sweeps/s1/importance?metric=accuracy");
  EXPECT_EQ(importance.at("metric"), "accuracy");
  EXPECT_EQ(importance.at("step"), 1);
  EXPECT_EQ(importance.at("mode"), "max");
  EXPECT_EQ(importance.at("reason"), "");
  const Json& first = importance.at("parameters").front();
  EXPECT_EQ(first.at("name"), "lr");
  EXPECT_GT(first.at("importance"), 0.8);
  EXPECT_LE(first.at("low"), first.at("importance"));
  EXPECT_GE(first.at("high"), first.at("importance"));

  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/importance?metric=loss", 400).at("detail"),
              HasSubstr("mode=min"));
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/importance?mode=best", 400).at("detail"),
              HasSubstr("min or max"));
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/importance?metric=loss&mode=min").at("reason"),
              HasSubstr("loss"));
  GetJson("/api/v1/sweeps/s99/importance", 404);
}

TEST_F(SweepsTest, ImportanceComparesTrialsAtACommonStep) {
  // The learning rate decides at step 1. Later steps are better for every trial, but only trials
  // with large widths have reached them.
  const std::vector<int64_t> widths = {8, 16, 24, 32, 40, 48, 56, 64};
  uint32_t next = 4;
  const auto add = [&](double lr, int64_t width, int64_t steps) {
    const TrialId trial(SweepId(1), TrialNumber(next++));
    Config config = SampleConfig(lr);
    config.Set("width", width);
    backend_.Add(TrialCreated{trial, config, "random"});
    backend_.Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(next)});
    for (int64_t step = 1; step <= steps; ++step)
      backend_.Add(TrialReported{
          {trial, 1},
          {.step = Step(step),
           .metrics = {{"accuracy", lr + static_cast<double>(step)}, {"time", 1 / lr}}}});
    const bool whole = steps > 1;
    backend_.Add(AttemptEnded{.attempt = {trial, 1},
                              .outcome = whole ? Outcome::kFinished : Outcome::kStopped});
    backend_.Add(TrialEnded{trial, whole ? TrialState::kCompleted : TrialState::kStopped, ""});
  };
  for (int i = 0; i < 80; ++i) {
    const int64_t width = widths[static_cast<size_t>(i * 5 % 8)];
    add(0.001 + 0.005 * i, width, width >= 56 ? 9 : 1);
  }
  const Json importance = GetJson("/api/v1/sweeps/s1/importance");
  ASSERT_EQ(importance.at("reason"), "");
  EXPECT_EQ(importance.at("step"), 1);
  EXPECT_EQ(importance.at("parameters").front().at("name"), "lr");
  const Json other = GetJson("/api/v1/sweeps/s1/importance?metric=time&mode=min");
  EXPECT_EQ(other.at("metric"), "time");
  EXPECT_EQ(other.at("parameters").front().at("name"), "lr");
}

TEST_F(SweepsTest, ANewSweepIsCreatedAndLocated) {
  const auto answer = client_->Post(std::string("/api/v1/sweeps") + kHere,
                                    {{"Idempotency-Key", "key-2"}}, kSweepFile, "application/yaml");
  const Json sweep = Parsed(answer, 201);
  EXPECT_EQ(answer->get_header_value("Location"), "/api/v1/sweeps/s2");
  EXPECT_EQ(sweep.at("id"), "s2");
  EXPECT_EQ(sweep.at("file"), kSweepFile);
  EXPECT_EQ(sweep.at("name"), "tiny");
  EXPECT_EQ(sweep.at("path"), "/opt/tiny.yaml");
}

TEST_F(SweepsTest, ANewSweepKnowsThePathOfItsFile) {
  const auto answer = client_->Post("/api/v1/sweeps?directory=/data/./a&file=my.yaml", kSweepFile,
                                    "application/yaml");
  EXPECT_EQ(Parsed(answer, 201).at("path"), "/data/a/my.yaml");
}

TEST_F(SweepsTest, ARepeatedKeyGivesTheFirstSweep) {
  const auto post = [&](const std::string& body) {
    return client_->Post(std::string("/api/v1/sweeps") + kHere, {{"Idempotency-Key", "a key"}},
                         body, "application/yaml");
  };
  EXPECT_EQ(Parsed(post(kSweepFile), 201).at("id"), "s2");
  EXPECT_EQ(Parsed(post(kSweepFile), 201).at("id"), "s2");
  const Json reused = Parsed(post(std::string(kSweepFile) + "# another\n"), 422);
  EXPECT_EQ(reused.at("type"), "urn:attune:problem:idempotency-key-reused");
}

TEST_F(SweepsTest, AnIdempotencyKeyBelongsToItsToken) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  const auto create_as = [&](const std::string& secret) {
    httplib::Client client("127.0.0.1", server_->port());
    client.set_default_headers({{"Authorization", "Bearer " + secret}});
    return Parsed(client.Post(std::string("/api/v1/sweeps") + kHere, {{"Idempotency-Key", "key"}},
                              kSweepFile, "application/yaml"),
                  201)
        .at("id");
  };
  EXPECT_EQ(create_as(std::string(kToken)), "s2");
  const std::string ada = tokens.Create("ada", Role::kAdmin).value();
  EXPECT_EQ(create_as(ada), "s3");
  EXPECT_EQ(create_as(ada), "s3");
}

TEST_F(SweepsTest, AnIdempotencyKeyHasABound) {
  const auto with = [&](size_t length) {
    return client_->Post(std::string("/api/v1/sweeps") + kHere,
                         {{"Idempotency-Key", std::string(length, 'k')}}, kSweepFile,
                         "application/yaml");
  };
  Parsed(with(255), 201);
  Parsed(with(256), 400);
}

TEST_F(SweepsTest, AFaultOfTheFileNamesItsPlace) {
  std::string file = kSweepFile;
  file.replace(file.find("max: 0.1"), 8, "max: 0.0001");
  for (const std::string path : {"/api/v1/sweeps", "/api/v1/sweeps:validate"}) {
    const Json problem = PostJson(path + kHere, file, 422);
    ASSERT_EQ(problem.at("errors").size(), 1u) << problem.dump();
    const Json& fault = problem["errors"][0];
    EXPECT_EQ(fault.at("pointer"), "/parameters/lr/max");
    EXPECT_EQ(fault.at("line"), 5);
    EXPECT_GT(fault.at("column"), 1);
    EXPECT_NE(fault.at("message"), "");
  }
  EXPECT_EQ(GetJson("/api/v1/sweeps").at("sweeps").size(), 1u);
}

TEST_F(SweepsTest, AnInvalidDocumentIsABadRequest) {
  for (const std::string text : {"{\"name\": ", "a: [1, 2\nb: }", "\t- x: : y"}) {
    const Json problem = PostJson(std::string("/api/v1/sweeps:validate") + kHere, text, 400);
    EXPECT_GE(problem.at("errors")[0].at("line"), 1);
  }
}

TEST_F(SweepsTest, AValidFileIsShownResolvedWithItsRungs) {
  const Json answer = PostJson(std::string("/api/v1/sweeps:validate") + kHere, kSweepFile);
  EXPECT_EQ(answer.at("rungs").dump(), "[1,3,9]");
  EXPECT_EQ(answer.at("resolved").at("name"), "tiny");
  EXPECT_EQ(answer["resolved"].at("failure").at("max_restarts"), 3);
  EXPECT_EQ(GetJson("/api/v1/sweeps").at("sweeps").size(), 1u);
}

TEST_F(SweepsTest, AResolvedFileCreatesAnEqualSweep) {
  const std::string path =
      PostJson(std::string("/api/v1/sweeps") + kHere, kSweepFile, 201).at("id");
  const Json resolved = GetJson("/api/v1/sweeps/" + path + "/resolved").at("resolved");
  EXPECT_EQ(resolved.at("name"), "tiny");
  const std::string again = PostJson("/api/v1/sweeps", resolved.dump(), 201).at("id");
  EXPECT_NE(again, path);
  EXPECT_EQ(GetJson("/api/v1/sweeps/" + again + "/resolved").at("resolved"), resolved);
  GetJson("/api/v1/sweeps/s99/resolved", 404);
}

}  // namespace
}  // namespace attune::server

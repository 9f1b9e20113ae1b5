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

using ApiTest = HttpFixture;

TEST_F(ApiTest, ASweepIsShownAsDocumented) {
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

TEST_F(ApiTest, TheBestTrialComesWithItsConfigurationAndCheckpoint) {
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

TEST_F(ApiTest, TheFolderOfAFileIsAbsolute) {
  for (const std::string path : {"/api/v1/sweeps", "/api/v1/sweeps:validate"}) {
    EXPECT_THAT(PostJson(path + "?directory=opt", kSweepFile, 400).at("detail"),
                HasSubstr("directory: opt is a relative path"));
    EXPECT_THAT(PostJson(path, kSweepFile, 422).at("errors")[0].at("message"),
                HasSubstr("or give the folder in the query `directory`"));
  }
}

TEST_F(ApiTest, SweepsAreListedNewestFirstAndInPages) {
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

TEST_F(ApiTest, TrialsAreListedByNumberAndInPages) {
  std::vector<int> numbers;
  std::string token;
  do {
    const Json page = GetJson("/api/v1/sweeps/s1/trials?page_size=3&page_token=" + token);
    for (const Json& trial : page.at("trials")) numbers.push_back(trial.at("number"));
    token = page.at("next_page_token");
  } while (!token.empty());
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3));
}

TEST_F(ApiTest, ADecisionIsExplainedByThoseAtItsRung) {
  const Json explanation = GetJson("/api/v1/sweeps/s1/trials/1/explanation");
  EXPECT_EQ(explanation.at("decision").at("reason"), "stopped at step 1: rank 2 of 2");
  EXPECT_EQ(explanation.at("decision").at("policy"), 2) << "as the sweep was created";
  EXPECT_EQ(explanation.at("policy").at("name"), "asha");
  EXPECT_EQ(explanation.at("policy_changed"), false);
  EXPECT_EQ(explanation.at("rung_trials"), Json::parse(R"([
      {"number": 0, "value": 0.5, "verdict": "continue"},
      {"number": 1, "value": 0.25, "verdict": "stop"}])"));
}

TEST_F(ApiTest, ATrialSaysWhyItHasItsConfiguration) {
  const Json drawn = Json::parse(R"({"rule": "random", "from": [], "results": 0, "score": null,
                                     "text": "drawn at random"})");
  const Json trial = GetJson("/api/v1/sweeps/s1/trials/1");
  EXPECT_EQ(trial.at("origin"), "random");
  EXPECT_EQ(trial.at("rationale"), drawn);
  const Json explanation = GetJson("/api/v1/sweeps/s1/trials/3/explanation");
  EXPECT_EQ(explanation.at("origin"), "random");
  EXPECT_EQ(explanation.at("rationale"), nullptr) << "of a log that tells none";
  EXPECT_EQ(explanation.at("decision"), nullptr) << "nothing was decided yet";
  EXPECT_EQ(explanation.at("rung_trials"), Json::array());
}

TEST_F(ApiTest, ImportanceIsOfWhatTellsTheBestTrialsFromTheOthers) {
  const Json few = GetJson("/api/v1/sweeps/s1/importance");
  EXPECT_EQ(few.at("parameters"), Json::array());
  EXPECT_THAT(few.at("reason"), HasSubstr("needs 20 trials that have come to an end; so far"));

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
  EXPECT_EQ(importance.at("trials"), 63) << "but the one that is to be tried again";
  EXPECT_EQ(importance.at("reason"), "");
  const Json& first = importance.at("parameters").front();
  EXPECT_EQ(first.at("name"), "lr");
  EXPECT_GT(first.at("importance"), 0.8);

  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/importance?metric=loss", 400).at("detail"),
              HasSubstr("s1 does not improve loss; importance is known for accuracy"));
  GetJson("/api/v1/sweeps/s99/importance", 404);
}

TEST_F(ApiTest, ADecisionIsExplainedByItsStep) {
  const Json first = GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=1");
  EXPECT_EQ(first.at("decision").at("verdict"), "stop");
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=5", 404).at("detail"),
              HasSubstr("nothing was decided on trial s1/1 at step 5"));
  GetJson("/api/v1/sweeps/s1/trials/99/explanation", 404);
  GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=many", 400);
}

TEST_F(ApiTest, ATokenOfAnotherListIsABadRequest) {
  const std::string token = GetJson("/api/v1/sweeps/s1/trials?page_size=3").at("next_page_token");
  EXPECT_THAT(GetJson("/api/v1/sweeps?page_token=" + token, 400).at("detail"),
              HasSubstr("page_token"));
  GetJson("/api/v1/sweeps?page_token=nonsense", 400);
}

TEST_F(ApiTest, PageSizesHaveBounds) {
  GetJson("/api/v1/sweeps/s1/trials?page_size=1000");
  for (const std::string size : {"0", "1001", "-1", "many", "", "1e3"})
    EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials?page_size=" + size, 400).at("detail"),
                HasSubstr("page_size"));
}

TEST_F(ApiTest, ATrialIsShownWithWhatHappenedToIt) {
  const Json trial = GetJson("/api/v1/sweeps/s1/trials/0");
  EXPECT_EQ(trial.at("state"), "completed");
  EXPECT_EQ(trial.at("reason"), "reached step 9, the last");
  EXPECT_EQ(trial.at("attempt_count"), 2);
  EXPECT_EQ(trial.at("step"), 9);
  EXPECT_EQ(trial.at("milestone"), 9);
  EXPECT_EQ(trial.at("seconds"), 10.25);  // of both attempts
  EXPECT_EQ(trial.at("best"), 0.871);
  ASSERT_EQ(trial.at("history").size(), 3u);
  EXPECT_EQ(trial["history"][1].dump(),
            R"({"step":3,"time":"2026-11-21T10:00:10.000000Z","attempt":1,"seconds":4.25,)"
            R"("metrics":{"accuracy":0.75,"loss":0.3333333333333333}})");
  ASSERT_EQ(trial.at("attempts").size(), 2u);
  const Json& first = trial["attempts"][0];
  EXPECT_EQ(first.at("outcome"), "failed");
  EXPECT_EQ(first.at("failure"), "rank 1 was killed by signal 9 (SIGKILL)\nepoch 4\nout of memory");
  EXPECT_EQ(first.at("pids").dump(), "[812,813]");
  EXPECT_EQ(first.at("first_step"), "2026-11-21T10:00:05.500000Z");
  EXPECT_EQ(first.at("ranks")[1].dump(),
            R"({"rank":1,"executor":"box","local_rank":1,"cpus":1,"gpus":[0]})");
  EXPECT_TRUE(first.at("resumed_from").is_null());
  EXPECT_EQ(trial["attempts"][1].at("resumed_from"), 3);
  ASSERT_EQ(trial.at("decisions").size(), 2u);
  EXPECT_EQ(trial["decisions"][0].at("rule"), "asha");
  EXPECT_EQ(trial["decisions"][0].at("cutoff"), 0.5);
  EXPECT_TRUE(trial["decisions"][1].at("cutoff").is_null());
  EXPECT_EQ(trial.at("checkpoints")[0].at("digest"), "sha256:03");
}

TEST_F(ApiTest, TheCheckpointsOfASweepAreListedInPages) {
  std::vector<Json> kept;
  std::string token;
  int pages = 0;
  do {
    const Json page = GetJson("/api/v1/sweeps/s1/checkpoints?page_size=1&page_token=" + token);
    for (const Json& checkpoint : page.at("checkpoints")) kept.push_back(checkpoint);
    token = page.at("next_page_token");
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(pages, 4);  // one a trial
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].at("sweep"), "s1");
  EXPECT_EQ(kept[0].at("trial"), 0);
  EXPECT_EQ(kept[0].at("attempt"), 1);
  EXPECT_EQ(kept[0].at("step"), 3);
  EXPECT_EQ(kept[0].at("bytes"), 431'232);
  EXPECT_EQ(kept[0].at("executor"), "box");
  EXPECT_TRUE(kept[0].at("best").is_null());  // it was better at step 9
  GetJson("/api/v1/sweeps/s9/checkpoints", 404);
  GetJson("/api/v1/sweeps/s1/checkpoints?page_size=0", 400);
}

TEST_F(ApiTest, ACheckpointsFilesAreReadPieceByPiece) {
  const std::string path = "/api/v1/sweeps/s1/trials/0/checkpoints/1-3";
  EXPECT_EQ(GetJson(path).at("executor"), "box");
  EXPECT_TRUE(GetJson(path).at("dropped").is_null());
  const auto piece = client_->Get(path + "/content?file=state/model.bin&offset=9&limit=100");
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->status, 200);
  EXPECT_EQ(piece->body, "s1/0/1-3 state/model.bin 9 100");
  EXPECT_EQ(piece->get_header_value("X-File-Size"), "5000000");
  EXPECT_EQ(client_->Get(path + "/content?file=a")->body, "s1/0/1-3 a 0 1048576");
  GetJson(path + "/content", 400);
  GetJson(path + "/content?file=a&offset=-1", 400);
  GetJson(path + "/content?file=a&limit=4194305", 400);
  GetJson("/api/v1/sweeps/s1/trials/0/checkpoints/1-4", 404);
  backend_.refusal = Error{ErrorCode::kUnavailable, "executor box is lost since noon"};
  EXPECT_EQ(GetJson(path + "/content?file=a", 503).at("detail"), "executor box is lost since noon");
}

TEST_F(ApiTest, NumbersThatJsonCannotCarryAreWords) {
  const Json trial = GetJson("/api/v1/sweeps/s1/trials/3");
  EXPECT_EQ(trial.at("metrics").at("accuracy"), "-inf");
  EXPECT_EQ(trial["history"][0]["metrics"]["accuracy"], "nan");
  EXPECT_TRUE(trial.at("best").is_null());
}

TEST_F(ApiTest, CurvesAreColumns) {
  const Json curves = GetJson("/api/v1/sweeps/s1/curves");
  EXPECT_EQ(curves.at("metric"), "accuracy");
  EXPECT_EQ(curves.at("seq"), 38);
  EXPECT_EQ(
      curves.at("trials").dump(),
      R"([{"number":0,"steps":[1,3,9],"values":[0.5,0.75,0.871],)"
      R"("segments":[{"attempt":1,"first_step":1},{"attempt":2,"first_step":9}],"clones":[]},)"
      R"({"number":1,"steps":[1],"values":[0.25],"segments":[{"attempt":1,"first_step":1}],"clones":[]},)"
      R"({"number":2,"steps":[1],"values":[0.6],"segments":[{"attempt":1,"first_step":1}],"clones":[]},)"
      R"({"number":3,"steps":[1,2],"values":["nan","-inf"],)"
      R"("segments":[{"attempt":1,"first_step":1}],"clones":[]}])");
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1/curves?metric=loss").at("trials").size(), 4u);
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/curves?metric=other", 400).at("detail"),
              HasSubstr("has reported or logged other"));
}

TEST_F(ApiTest, WhatIsLoggedComesInOrder) {
  const AttemptId attempt{{SweepId(1), TrialNumber(3)}, 2};
  backend_.Add(AttemptAssigned{.attempt = attempt, .epoch = Epoch(9)});
  for (int64_t number = 1; number <= 3; ++number)
    backend_.Add(MetricsLogged{attempt,
                               number,
                               static_cast<double>(number) / 4,
                               {{"batch_loss", number == 2 ? std::nan("") : 0.5}}});
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1").at("logged_metrics").dump(), R"(["batch_loss"])");
  const Json all = GetJson("/api/v1/sweeps/s1/trials/3/logged").at("logged");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].at("attempt"), 2);
  EXPECT_EQ(all[1].at("step"), 0.5);
  EXPECT_EQ(all[1].at("metrics").dump(), R"({"batch_loss":"nan"})");
  const std::string behind = all[0].at("seq").dump();
  EXPECT_EQ(
      GetJson("/api/v1/sweeps/s1/trials/3/logged?limit=1&after=" + behind).at("logged").dump(),
      Json::array({all[1]}).dump());
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1/curves?metric=batch_loss").at("trials").dump(),
            R"([{"number":3,"steps":[],"values":[],"segments":[],"logged_steps":[0.25,0.5,0.75],)"
            R"("logged_values":[0.5,"nan",0.5],"clones":[]}])");
  GetJson("/api/v1/sweeps/s1/trials/99/logged", 404);
  GetJson("/api/v1/sweeps/s1/trials/3/logged?limit=0", 400);
}

TEST_F(ApiTest, WhatIsNotThereIs404) {
  for (const std::string path :
       {"/api/v1/sweeps/s9", "/api/v1/sweeps/1", "/api/v1/sweeps/s9/trials",
        "/api/v1/sweeps/s1/trials/99", "/api/v1/sweeps/s1/trials/x", "/api/v1/sweeps/s9/curves",
        "/api/v1/sweeps/s9/curves?metric=loss", "/api/v1/nothing", "/api/v2/sweeps", "/api",
        "/api/v1/events?sweep=s9", "/api/v1/sweeps/s18446744073709551615",
        "/api/v1/sweeps/s1/trials/4294967295", "/api/v1/sweeps/s1/trials/99/logs"})
    GetJson(path, 404);
  PostJson("/api/v1/sweeps/s1:dance", "", 404);
}

TEST_F(ApiTest, AWrongMethodIsToldTheRightOnes) {
  const auto answer = client_->Delete("/api/v1/sweeps");
  Parsed(answer, 405);
  EXPECT_EQ(answer->get_header_value("Allow"), "GET, HEAD, POST");
  Parsed(client_->Get("/api/v1/sweeps/s1:stop"), 405);
  Parsed(client_->Post("/livez"), 405);
  Parsed(client_->Post("/"), 405);
  Parsed(client_->Put("/sweeps/s1", "x", "text/plain"), 405);
}

TEST_F(ApiTest, ANewSweepIsCreatedAndLocated) {
  const auto answer = client_->Post(std::string("/api/v1/sweeps") + kHere,
                                    {{"Idempotency-Key", "key-2"}}, kSweepFile, "application/yaml");
  const Json sweep = Parsed(answer, 201);
  EXPECT_EQ(answer->get_header_value("Location"), "/api/v1/sweeps/s2");
  EXPECT_EQ(sweep.at("id"), "s2");
  EXPECT_EQ(sweep.at("file"), kSweepFile);
  EXPECT_EQ(sweep.at("name"), "tiny");
  EXPECT_EQ(sweep.at("path"), "/opt/tiny.yaml");
}

TEST_F(ApiTest, ANewSweepKnowsThePathOfItsFile) {
  const auto answer = client_->Post("/api/v1/sweeps?directory=/data/./a&file=my.yaml", kSweepFile,
                                    "application/yaml");
  EXPECT_EQ(Parsed(answer, 201).at("path"), "/data/a/my.yaml");
}

TEST_F(ApiTest, ARepeatedKeyGivesTheFirstSweep) {
  const auto post = [&](const std::string& body) {
    return client_->Post(std::string("/api/v1/sweeps") + kHere, {{"Idempotency-Key", "a key"}},
                         body, "application/yaml");
  };
  EXPECT_EQ(Parsed(post(kSweepFile), 201).at("id"), "s2");
  EXPECT_EQ(Parsed(post(kSweepFile), 201).at("id"), "s2");
  const Json reused = Parsed(post(std::string(kSweepFile) + "# another\n"), 422);
  EXPECT_EQ(reused.at("type"), "urn:attune:problem:idempotency-key-reused");
}

TEST_F(ApiTest, AnIdempotencyKeyBelongsToItsToken) {
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

TEST_F(ApiTest, AnIdempotencyKeyHasABound) {
  const auto with = [&](size_t length) {
    return client_->Post(std::string("/api/v1/sweeps") + kHere,
                         {{"Idempotency-Key", std::string(length, 'k')}}, kSweepFile,
                         "application/yaml");
  };
  Parsed(with(255), 201);
  Parsed(with(256), 400);
}

TEST_F(ApiTest, AFaultOfTheFileNamesItsPlace) {
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

TEST_F(ApiTest, WhatIsNoDocumentIsABadRequest) {
  for (const std::string text : {"{\"name\": ", "a: [1, 2\nb: }", "\t- x: : y"}) {
    const Json problem = PostJson(std::string("/api/v1/sweeps:validate") + kHere, text, 400);
    EXPECT_GE(problem.at("errors")[0].at("line"), 1);
  }
}

TEST_F(ApiTest, AValidFileIsShownResolvedWithItsRungs) {
  const Json answer = PostJson(std::string("/api/v1/sweeps:validate") + kHere, kSweepFile);
  EXPECT_EQ(answer.at("rungs").dump(), "[1,3,9]");
  EXPECT_EQ(answer.at("resolved").at("name"), "tiny");
  EXPECT_EQ(answer["resolved"].at("failure").at("max_restarts"), 3);
  EXPECT_EQ(GetJson("/api/v1/sweeps").at("sweeps").size(), 1u);
}

TEST_F(ApiTest, AResolvedSweepMakesASweepLikeItself) {
  const std::string path =
      PostJson(std::string("/api/v1/sweeps") + kHere, kSweepFile, 201).at("id");
  const Json resolved = GetJson("/api/v1/sweeps/" + path + "/resolved").at("resolved");
  EXPECT_EQ(resolved.at("name"), "tiny");
  const std::string again = PostJson("/api/v1/sweeps", resolved.dump(), 201).at("id");
  EXPECT_NE(again, path);
  EXPECT_EQ(GetJson("/api/v1/sweeps/" + again + "/resolved").at("resolved"), resolved);
  GetJson("/api/v1/sweeps/s99/resolved", 404);
}

TEST_F(ApiTest, TheBackendsRefusalsBecomeStatuses) {
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

TEST_F(ApiTest, LogsComeFromTheNewestAttemptsEnd) {
  const auto answer = client_->Get("/api/v1/sweeps/s1/trials/0/logs");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "s1/0.2 0 -65536 65536\n");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(answer->get_header_value("X-Log-Offset"), "17");
  EXPECT_EQ(answer->get_header_value("X-Log-Size"), "40");
  EXPECT_EQ(answer->get_header_value("X-Log-Gap"), "3-9");
  EXPECT_EQ(client_->Get("/api/v1/sweeps/s1/trials/0/logs?attempt=1&rank=1&offset=5&limit=9")->body,
            "s1/0.1 1 5 9\n");
}

TEST_F(ApiTest, LogQueriesHaveBounds) {
  const std::string logs = "/api/v1/sweeps/s1/trials/0/logs";
  EXPECT_EQ(client_->Get(logs + "?limit=1048576")->status, 200);
  for (const std::string query : {"limit=1048577", "limit=0", "attempt=0", "attempt=3", "rank=-1",
                                  "rank=99999999999999999999", "offset=x"})
    GetJson(logs + "?" + query, 400);
}

TEST_F(ApiTest, LogsOfAnExecutorThatIsAwayAre503) {
  backend_.refusal = Error{ErrorCode::kUnavailable, "executor box is not connected"};
  GetJson("/api/v1/sweeps/s1/trials/0/logs", 503);
}

TEST_F(ApiTest, ExecutorsShowWhatIsFree) {
  EXPECT_EQ(GetJson("/api/v1/executors").dump(),
            R"({"executors":[{"name":"box","state":"online","address":"127.0.0.1","labels":{},)"
            R"("cpus":2,"cpus_free":1,"gpus":0,"gpus_free":0,"memory_bytes":25165824000,)"
            R"("memory_free_bytes":0,"running":[],"drain":null,"health_problem":null,)"
            R"("quarantine":null,"disk_free_bytes":null,"memory_available_bytes":null,)"
            R"("seconds_since_heartbeat":null}]})");
}

TEST_F(ApiTest, DemandIsWhatFindsNoRoom) {
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

TEST_F(ApiTest, WhileTheServerStartsItLivesAndSaysHowFarItIs) {
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

TEST_F(ApiTest, HealthIsToldToAnyone) {
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

TEST_F(ApiTest, MetricsAreInPrometheusForm) {
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

TEST_F(ApiTest, MetricsCountExecutorsInEveryState) {
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

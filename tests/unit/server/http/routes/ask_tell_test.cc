#include <future>

#include "tests/support/mentions.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

// Sweep s2, whose trials an external program runs.
class AskTellTest : public HttpFixture {
 protected:
  AskTellTest() {
    PostJson("/api/v1/sweeps", R"(name: asked
metric: {name: accuracy, mode: max}
parameters: {lr: {min: 0.001, max: 0.1}}
initial_points: [{lr: 0.01}, {lr: 0.02}]
searcher: {name: random, seed: 7}
scheduler: {name: asha, max: 9}
failure: {backoff: 0s}
max_concurrent_trials: 1
)",
             201);
  }

  Json Ask(const std::string& key = "") {
    return PostJson("/api/v1/sweeps/s2/trials:ask", "", 200, key);
  }
  Json Tell(const std::string& body, int status = 200, int trial = 0, const std::string& key = "") {
    return PostJson(Path(trial), body, status, key);
  }
  void TellEnd(const std::string& body, int trial = 0) {
    const auto answer = client_->Post(Path(trial), body, "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 204) << answer->body;
    EXPECT_EQ(answer->body, "");
  }

 private:
  static std::string Path(int trial) {
    return "/api/v1/sweeps/s2/trials/" + std::to_string(trial) + ":tell";
  }
};

// The server rebuilds its tables after an update that changes their form.
TEST_F(AskTellTest, AsksAndReportsAreAnsweredWhileTablesAreRebuilt) {
  const std::string path = folder_ / "attune.db";
  const auto database =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 5'000).value();
  ASSERT_TRUE(database->Execute("INSERT INTO building (seq, tables) VALUES (5, 0)").ok());
  server_.reset();
  reader_ = Reader::MakeLazy(path);
  server_ = HttpServer::Start(ServerOptions()).value();
  client_ = NewClient();

  const Json trial = Ask("key");
  EXPECT_EQ(trial.at("trial"), 0);
  PostJson("/api/v1/sweeps/s2/trials:ask", R"({"lease": "10s"})", 422, "key");
  const std::string epoch = trial.at("epoch").dump();
  EXPECT_EQ(
      Tell(R"({"epoch": )" + epoch + R"(, "step": 1, "metrics": {"accuracy": 0.5}})").at("verdict"),
      "continue");
  const Json nothing = Ask();
  EXPECT_EQ(nothing.at("state"), "running");
  EXPECT_TRUE(nothing.at("trial").is_null());

  const auto refused = client_->Get("/api/v1/sweeps");
  EXPECT_THAT(Parsed(refused, 503).at("detail"), HasSubstr("5 of "));
  EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
  PostJson("/api/v1/sweeps/s2:kill", "", 503);
  EXPECT_EQ(GetJson("/api/v1/executors").at("executors").size(), 1u)
      << "executors are read from the brain";

  ASSERT_TRUE(database->Execute("DELETE FROM building").ok());
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("state"), "running") << "it was not killed";
}

TEST_F(AskTellTest, AnOfferHasAllThatATrainingLoopNeeds) {
  const Json trial = Ask();
  EXPECT_EQ(trial.at("trial"), 0);
  EXPECT_EQ(trial.at("config").dump(), R"({"lr":0.01})");
  EXPECT_EQ(trial.at("attempt"), 1);
  EXPECT_GE(trial.at("epoch"), 1);
  EXPECT_GT(trial.at("seed"), 0);
  EXPECT_EQ(trial.at("milestone"), 1);
  EXPECT_EQ(trial.at("max_step"), 9);
  EXPECT_EQ(trial.at("state"), "running");
}

TEST_F(AskTellTest, AReportGetsAVerdict) {
  const std::string epoch = Ask().at("epoch").dump();
  const Json verdict =
      Tell(R"({"epoch": )" + epoch + R"(, "step": 1, "metrics": {"accuracy": 0.5}})");
  EXPECT_EQ(verdict.at("verdict"), "continue");
  EXPECT_THAT(verdict.at("reason"), HasSubstr("rung 1"));
  EXPECT_EQ(verdict.at("milestone"), 3);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2/trials/0").at("best"), 0.5);
}

TEST_F(AskTellTest, AnAskAndEachReportNeedOneRoundTrip) {
  const int before = backend_.looks;
  const std::string epoch = Ask().at("epoch").dump();
  Tell(R"({"epoch": )" + epoch + R"(, "step": 1, "metrics": {"accuracy": 0.5}})");
  EXPECT_EQ(backend_.looks, before);
}

TEST_F(AskTellTest, TheTimeMetricIsTheStepOfAReport) {
  const std::string spec =
      "metric: {name: accuracy, mode: max}\nparameters: {lr: {min: 0.001, max: 0.1}}\n"
      "initial_points: [{lr: 0.01}]\nsearcher: {name: random}\nscheduler: {name: asha, time_attr: "
      "samples, max: 900}\n";
  const std::string trials = "/api/v1/sweeps/" +
                             PostJson("/api/v1/sweeps", spec, 201).at("id").get<std::string>() +
                             "/trials";
  const Json asked = PostJson(trials + ":ask", "");
  EXPECT_EQ(asked.at("milestone"), 1);
  const auto tell = [&](const std::string& rest, int status) {
    return PostJson(trials + "/0:tell", R"({"epoch": )" + asked.at("epoch").dump() + rest, status);
  };
  EXPECT_EQ(tell(R"(, "metrics": {"accuracy": 0.5, "samples": 128.5}})", 200).at("milestone"), 900);
  EXPECT_EQ(GetJson(trials + "/0").at("step"), 128);
  const auto fault = [](const Json& problem) { return problem.at("errors").at(0).dump(); };
  EXPECT_THAT(fault(tell(R"(, "metrics": {"accuracy": 0.5, "samples": "nan"}})", 422)),
              HasSubstr("nan"));
  EXPECT_THAT(fault(tell(R"(, "step": 7, "metrics": {"accuracy": 0.5, "samples": 300}})", 422)),
              testing::Mentions("7", "300"));
  EXPECT_THAT(fault(tell(R"(, "step": 7, "metrics": {"accuracy": 0.5}})", 422)),
              HasSubstr("/metrics/samples"));
}

TEST_F(AskTellTest, ARepeatedReportGetsTheSameVerdict) {
  const std::string body = R"({"epoch": )" + Ask().at("epoch").dump() +
                           R"(, "step": 9, "metrics": {"accuracy": "nan"}})";
  const Json first = Tell(body);
  EXPECT_EQ(first.at("verdict"), "stop");
  EXPECT_THAT(first.at("reason"), HasSubstr("step 9"));
  EXPECT_EQ(Tell(body).dump(), first.dump());
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2/trials/0").at("state"), "completed");
}

TEST_F(AskTellTest, AnAskWithTheSameKeyGivesTheSameTrial) {
  EXPECT_EQ(Ask("k").dump(), Ask("k").dump());
}

TEST_F(AskTellTest, AnAskThatIsRepeatedAfterTheEndGetsTheFirstAnswer) {
  Json first = Ask("k");
  TellEnd(R"({"epoch": )" + first.at("epoch").dump() + R"(, "state": "completed"})");
  EXPECT_EQ(Ask("k").dump(), first.dump());  // the trial has ended
  TellEnd(R"({"epoch": )" + Ask().at("epoch").dump() + R"(, "state": "completed"})", 1);
  Ask();  // the searcher is exhausted
  first["state"] = "completed";
  EXPECT_EQ(Ask("k").dump(), first.dump());  // the sweep has ended, too
  EXPECT_TRUE(Ask("another").at("trial").is_null());
}

TEST_F(AskTellTest, AnEnqueueThatIsRepeatedAfterTheEndGetsTheFirstAnswer) {
  const std::string path = "/api/v1/sweeps/s2/trials";
  const std::string body = R"({"config": {"lr": 0.05}})";
  EXPECT_EQ(PostJson(path, body, 201, "k").at("number"), 0);
  PostJson("/api/v1/sweeps/s2:kill", "", 202);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("state"), "killed");
  EXPECT_EQ(PostJson(path, body, 201, "k").at("number"), 0);
  EXPECT_THAT(PostJson(path, body, 409, "another").at("detail"), HasSubstr("s2"));
}

TEST_F(AskTellTest, ATellAfterItsLeaseIsRefused) {
  const Json first = PostJson("/api/v1/sweeps/s2/trials:ask", R"({"lease": "10s"})");
  EXPECT_EQ(first.at("lease"), 10.0);
  const std::string epoch = first.at("epoch").dump();
  TellEnd(R"({"epoch": )" + epoch + R"(, "state": "running"})");
  backend_.Wait(11'000'000);
  for (const std::string rest :
       {R"("step": 1, "metrics": {"accuracy": 0.5}})", R"("state": "running"})"})
    EXPECT_THAT(Tell(R"({"epoch": )" + epoch + ", " + rest, 409).at("detail").get<std::string>(),
                testing::Mentions("lease", "epoch " + epoch, "s2/0"));
  const Json again = Ask();
  EXPECT_EQ(again.at("trial"), 0);
  EXPECT_EQ(again.at("attempt"), 2);
  EXPECT_EQ(again.at("lease"), 3600.0);
}

TEST_F(AskTellTest, AReleasedTrialIsOfferedAgainAtOnce) {
  const std::string epoch = Ask().at("epoch").dump();
  const std::string release = R"({"epoch": )" + epoch + R"(, "state": "released"})";
  TellEnd(release);
  TellEnd(release);  // repeats the request
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2/trials/0").at("attempts")[0].at("outcome"), "lost");
  EXPECT_THAT(Tell(R"({"epoch": )" + epoch + R"(, "state": "running"})", 409).at("detail"),
              HasSubstr("epoch " + epoch));
  const Json again = Ask();
  EXPECT_EQ(again.at("trial"), 0);
  EXPECT_EQ(again.at("attempt"), 2);
}

TEST_F(AskTellTest, ALeaseIsADuration) {
  const auto place = [&](const std::string& body) {
    return PostJson("/api/v1/sweeps/s2/trials:ask", body, 422).at("errors")[0].at("pointer");
  };
  EXPECT_EQ(place(R"({"lease": 10})"), "/lease");
  EXPECT_EQ(place(R"({"lease": "999ms"})"), "/lease");
  EXPECT_EQ(place(R"({"leas": "10s"})"), "/leas");
}

TEST_F(AskTellTest, AnAskBeyondTheLimitIsExplained) {
  Ask();
  const Json none = Ask();
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "running");
  EXPECT_THAT(none.at("reason"), HasSubstr("max_concurrent_trials"));
}

TEST_F(AskTellTest, APausedSweepOffersNothing) {
  PostJson("/api/v1/sweeps/s2:pause", "", 202);
  const Json none = Ask();
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "paused");
}

TEST_F(AskTellTest, AStoppedSweepSaysThatItStartsNoOtherTrial) {
  PostJson("/api/v1/sweeps/s2:edit", R"({"max_concurrent_trials": 2})", 202);
  Ask();
  PostJson("/api/v1/sweeps/s2:stop", "", 202);
  const Json none = Ask();
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "running");
  EXPECT_THAT(none.at("reason"), HasSubstr("stopped"));
}

TEST_F(AskTellTest, TheEndOfASweepIsNotAnError) {
  for (int trial : {0, 1}) {
    const std::string body =
        R"({"epoch": )" + Ask().at("epoch").dump() + R"(, "state": "completed"})";
    TellEnd(body, trial);
    TellEnd(body, trial);  // repeats the report
  }
  Ask();  // the searcher is exhausted
  const Json none = Ask();
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "completed");
}

TEST_F(AskTellTest, ALongMessageIsCut) {
  const std::string epoch = Ask().at("epoch").dump();
  TellEnd(R"({"epoch": )" + epoch + R"(, "state": "failed", "message": ")" +
          std::string(1'000'000, 'M') + R"("})");
  const std::string failure = GetJson("/api/v1/sweeps/s2/trials/0").at("attempts")[0].at("failure");
  EXPECT_THAT(failure, HasSubstr("M… (1,000,000 bytes, cut)"));
  EXPECT_LT(failure.size(), 20'000u);
}

TEST_F(AskTellTest, AFailedTrialIsOfferedAgain) {
  const std::string epoch = Ask().at("epoch").dump();
  TellEnd(R"({"epoch": )" + epoch + R"(, "state": "failed", "message": "out of memory"})");
  const Json again = Ask();
  EXPECT_EQ(again.at("trial"), 0);
  EXPECT_EQ(again.at("attempt"), 2);
  const Json trial = GetJson("/api/v1/sweeps/s2/trials/0");
  EXPECT_THAT(trial.at("attempts")[0].at("failure"), HasSubstr("out of memory"));

  EXPECT_THAT(Tell(R"({"epoch": )" + epoch + R"(, "step": 1, "metrics": {"accuracy": 1}})", 409)
                  .at("detail"),
              HasSubstr("epoch " + epoch));
}

// Text of the form: , "m0": 0, "m1": 0, …
std::string Metrics(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += R"(, "m)" + std::to_string(i) + R"(": 0)";
  return text;
}

TEST_F(AskTellTest, AnInvalidTellNamesThePlace) {
  const std::string epoch = Ask().at("epoch").dump();
  const std::pair<std::string, std::string> cases[] = {
      {R"({"step": 1, "metrics": {"accuracy": 1}})", "/epoch"},
      {R"({"epoch": 1})", "/step"},
      {R"({"epoch": 1, "step": 0, "metrics": {"accuracy": 1}})", "/step"},
      {R"({"epoch": 1, "step": 1, "metrics": {"accuracy": 1, "": 2}})", "/metrics/"},
      {R"({"epoch": 1, "step": 1, "metrics": {"accuracy": 1, "a\nb": 2}})", "/metrics/a\nb"},
      {R"({"epoch": 1, "step": 1, "metrics": {"accuracy": 1)" + Metrics(1'000) + "}}", "/metrics"},
      {R"({"epoch": 1, "step": 1, "metrics": {"loss": 1}})", "/metrics/accuracy"},
      {R"({"epoch": 1, "step": 1, "metrics": {"accuracy": "high"}})", "/metrics/accuracy"},
      {R"({"epoch": 1, "step": 1, "metrics": 3})", "/metrics"},
      {R"({"epoch": 1, "state": "stopped"})", "/state"},
      {R"({"epoch": 1, "state": "failed", "step": 3})", "/state"},
  };
  for (const auto& [body, pointer] : cases)
    EXPECT_EQ(Tell(body, 422).at("errors")[0].at("pointer"), pointer) << body;
  Tell("", 422);
  Tell("{", 400);
}

TEST_F(AskTellTest, OnlySweepsWithoutAProgramTakeAskAndTell) {
  EXPECT_THAT(PostJson("/api/v1/sweeps/s1/trials:ask", "", 409).at("detail"), HasSubstr("s1"));
  EXPECT_THAT(PostJson("/api/v1/sweeps/s1/trials/0:tell", R"({"epoch": 1, "state": "failed"})", 409)
                  .at("detail"),
              HasSubstr("s1"));
  PostJson("/api/v1/sweeps/s9/trials:ask", "", 404);
  PostJson("/api/v1/sweeps/s2/trials/7:tell", R"({"epoch": 1, "state": "failed"})", 404);
}

// ---- Tell and ask in one request -------------------------------------------------------------

std::string AtStep(int step, const Json& trial) {
  return R"({"epoch": )" + trial.at("epoch").dump() + R"(, "step": )" + std::to_string(step) +
         R"(, "metrics": {"accuracy": 0.5}, "ask": true})";
}

TEST_F(AskTellTest, TheLastTellOfATrialMayAskForTheNext) {
  const int before = backend_.looks;
  const Json told = Tell(AtStep(9, Ask()));
  EXPECT_EQ(told.at("verdict"), "stop");
  const Json& next = told.at("next");
  EXPECT_EQ(next.at("trial"), 1);
  EXPECT_EQ(next.at("config").dump(), R"({"lr":0.02})");
  EXPECT_EQ(next.at("milestone"), 1);
  EXPECT_EQ(backend_.looks, before);
}

TEST_F(AskTellTest, ATellOfAContinuingTrialAsksForNothing) {
  const Json trial = Ask();
  EXPECT_FALSE(Tell(AtStep(1, trial)).contains("next"));
  EXPECT_FALSE(Tell(AtStep(1, trial)).contains("next"));  // repeats the report
  const auto renewed = client_->Post(
      "/api/v1/sweeps/s2/trials/0:tell",
      R"({"epoch": )" + trial.at("epoch").dump() + R"(, "state": "running", "ask": true})",
      "application/json");
  EXPECT_EQ(renewed->status, 204);
  EXPECT_TRUE(Ask().at("trial").is_null());  // only one trial at a time
}

TEST_F(AskTellTest, ATellOfAnEndMayAskForTheNext) {
  const Json told = Tell(R"({"epoch": )" + Ask().at("epoch").dump() +
                         R"(, "state": "completed", "ask": true, "lease": "10m"})");
  EXPECT_EQ(told.at("next").at("trial"), 1);
  EXPECT_EQ(told.at("next").at("lease"), 600);
  EXPECT_FALSE(told.contains("verdict"));
}

TEST_F(AskTellTest, ATellThatAsksIsRepeatedWithItsKey) {
  const std::string body = AtStep(9, Ask());
  const Json first = Tell(body, 200, 0, "k");
  EXPECT_EQ(Tell(body, 200, 0, "k").dump(), first.dump());
}

TEST_F(AskTellTest, ATellThatIsRefusedAsksForNothing) {
  const Json first = Ask();
  TellEnd(R"({"epoch": )" + first.at("epoch").dump() + R"(, "state": "completed"})");
  Tell(AtStep(9, first), 409);
  EXPECT_EQ(Ask().at("trial"), 1);
}

TEST_F(AskTellTest, WithoutANextTrialTheTellSaysWhy) {
  const Json second = Tell(AtStep(9, Ask())).at("next");
  for (int times = 0; times < 2; ++times) {  // the searcher is exhausted
    const Json next = Tell(AtStep(9, second), 200, 1).at("next");
    EXPECT_TRUE(next.at("trial").is_null());
    EXPECT_EQ(next.at("state"), "completed");
    EXPECT_THAT(next.at("reason"), HasSubstr("ended"));
  }
}

TEST_F(AskTellTest, ReachingTheTargetOffersNoFurtherTrial) {
  PostJson("/api/v1/sweeps", R"(name: targeted
metric: {name: accuracy, mode: max, target: 0.4}
parameters: {lr: {min: 0.001, max: 0.1}}
initial_points: [{lr: 0.01}, {lr: 0.02}]
searcher: {name: random, seed: 7}
scheduler: {name: asha, max: 9}
)",
           201);
  const Json asked = PostJson("/api/v1/sweeps/s3/trials:ask");
  ASSERT_EQ(asked.at("trial"), 0) << asked;
  const std::string body = AtStep(9, asked);
  const Json next = PostJson("/api/v1/sweeps/s3/trials/0:tell", body).at("next");
  EXPECT_TRUE(next.at("trial").is_null());
  EXPECT_EQ(next.at("state"), "completed");
  EXPECT_THAT(next.at("reason"), HasSubstr("s3"));
  GetJson("/api/v1/sweeps/s3/trials/1", 404);
}

TEST_F(AskTellTest, AnAskDuringTheEndOfTheSweepGetsNothing) {
  backend_.another = KillSweep{SweepId(2)};
  const Json none = Ask();
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "killed");
  EXPECT_THAT(none.at("reason"), HasSubstr("has ended"));
}

TEST_F(AskTellTest, ALeaseWithoutAnAskIsAFault) {
  const Json refused = Tell(R"({"epoch": )" + Ask().at("epoch").dump() +
                                R"(, "step": 1, "metrics": {"accuracy": 0.5}, "lease": "10m"})",
                            422);
  EXPECT_THAT(refused.at("errors").at(0).at("message"), HasSubstr("`ask`"));
}

constexpr std::string_view kThinking = R"(name: thought
metric: {name: accuracy, mode: max}
parameters: {lr: {min: 0.001, max: 0.1}}
searcher: {name: thinker}
scheduler: {name: asha, max: 9}
)";

class SlowSearcherTest : public HttpFixture {
 protected:
  explicit SlowSearcherTest(HttpLimits limits = {}) : HttpFixture(limits) {
    PostJson("/api/v1/sweeps", std::string(kThinking), 201);
  }
};

TEST_F(SlowSearcherTest, AnAskWaitsForASlowSearcher) {
  auto asked = std::async(std::launch::async,
                          [&] { return PostJson("/api/v1/sweeps/s2/trials:ask", "", 200, "k"); });
  backend_.Think();
  const Json trial = asked.get();
  EXPECT_EQ(trial.at("trial"), 0);
  EXPECT_EQ(trial.at("config").dump(), R"({"lr":0.05})");
}

TEST_F(SlowSearcherTest, ATellThatAsksWaitsForASlowSearcher) {
  auto asked =
      std::async(std::launch::async, [&] { return PostJson("/api/v1/sweeps/s2/trials:ask"); });
  backend_.Think();
  const std::string body = AtStep(9, asked.get());
  auto told = std::async(std::launch::async,
                         [&] { return PostJson("/api/v1/sweeps/s2/trials/0:tell", body); });
  backend_.Think();
  const Json answer = told.get();
  EXPECT_EQ(answer.at("verdict"), "stop");
  EXPECT_EQ(answer.at("next").at("trial"), 1);
}

class ImpatientTest : public SlowSearcherTest {
 protected:
  ImpatientTest() : SlowSearcherTest({.workers = 1, .postponed = std::chrono::milliseconds(50)}) {}
};

TEST_F(ImpatientTest, AnAskThatWaitsTooLongIsToldToAskAgain) {
  const Json none = PostJson("/api/v1/sweeps/s2/trials:ask");
  EXPECT_TRUE(none.at("trial").is_null());
  EXPECT_EQ(none.at("state"), "running");
  EXPECT_THAT(none.at("reason"), HasSubstr("ask again"));
}

}  // namespace
}  // namespace attune::server

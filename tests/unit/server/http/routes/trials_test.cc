#include <string>
#include <utility>

#include "base/result.h"
#include "tests/support/mentions.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using TrialsTest = HttpFixture;

TEST_F(TrialsTest, TrialsAreListedByNumberAndInPages) {
  std::vector<int> numbers;
  std::string token;
  do {
    const Json page = GetJson("/api/v1/sweeps/s1/trials?page_size=3&page_token=" + token);
    for (const Json& trial : page.at("trials")) numbers.push_back(trial.at("number"));
    token = page.at("next_page_token");
  } while (!token.empty());
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3));
}

TEST_F(TrialsTest, TrialsAreSortedAndFilteredInPages) {
  std::vector<int> numbers;
  std::string token;
  do {
    const Json page = GetJson(
        "/api/v1/sweeps/s1/trials?page_size=1&order_by=-best&filter=accuracy%3E0&page_token=" +
        token);
    for (const Json& trial : page.at("trials")) numbers.push_back(trial.at("number"));
    EXPECT_EQ(page.at("total_size"), 3);
    EXPECT_GT(page.at("seq"), 0);
    token = page.at("next_page_token");
  } while (!token.empty() && numbers.size() < 5);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 0));
}

TEST_F(TrialsTest, ATokenOfAnotherOrderOrFilterIsABadRequest) {
  const std::string list = "/api/v1/sweeps/s1/trials?page_size=1&page_token=";
  const std::string token = GetJson(list + "&order_by=best&filter=best%3E0").at("next_page_token");
  GetJson(list + token + "&order_by=best&filter=best%3E0");
  for (const std::string other :
       {"", "&order_by=best", "&order_by=-best&filter=best%3E0", "&order_by=best&filter=best%3E1"})
    EXPECT_THAT(GetJson(list + token + other, 400).at("detail"), HasSubstr("page_token")) << other;
  const std::string plain = GetJson(list).at("next_page_token");
  GetJson(list + plain);
  GetJson(list + plain + "&order_by=number");
  GetJson(list + plain + "&order_by=step", 400);
  for (const std::string wrong : {"p", "-", "p-0", "pzz-1"})
    GetJson(list + wrong + "&order_by=step", 400);
}

TEST_F(TrialsTest, AMalformedOrderOrFilterIsABadRequest) {
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials?filter=lr%3C0.1%20(a", 400).at("detail"),
              HasSubstr("position 10"));
  EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials?order_by=lr", 400).at("detail"),
              HasSubstr("config.NAME"));
}

TEST_F(TrialsTest, ADecisionIsExplainedByOthersAtItsRung) {
  const Json explanation = GetJson("/api/v1/sweeps/s1/trials/1/explanation");
  EXPECT_EQ(explanation.at("decision").at("reason"), "stopped at step 1: rank 2 of 2");
  EXPECT_EQ(explanation.at("decision").at("policy"), 2)
      << "the policy of the sweep as it was created";
  EXPECT_EQ(explanation.at("policy").at("name"), "asha");
  EXPECT_EQ(explanation.at("policy_changed"), false);
  EXPECT_EQ(explanation.at("rung_trials"), Json::parse(R"([
      {"number": 0, "value": 0.5, "verdict": "continue"},
      {"number": 1, "value": 0.25, "verdict": "stop"}])"));
}

TEST_F(TrialsTest, ATrialShowsTheRationaleOfItsConfiguration) {
  const Json drawn = Json::parse(R"({"rule": "random", "from": [], "results": 0, "score": null,
                                     "text": "drawn at random"})");
  const Json trial = GetJson("/api/v1/sweeps/s1/trials/1");
  EXPECT_EQ(trial.at("origin"), "random");
  EXPECT_EQ(trial.at("rationale"), drawn);
  const Json explanation = GetJson("/api/v1/sweeps/s1/trials/3/explanation");
  EXPECT_EQ(explanation.at("origin"), "random");
  EXPECT_EQ(explanation.at("rationale"), nullptr) << "the log has none";
  EXPECT_EQ(explanation.at("decision"), nullptr) << "no report was judged";
  EXPECT_EQ(explanation.at("rung_trials"), Json::array());
}

TEST_F(TrialsTest, ADecisionIsExplainedByItsStep) {
  const Json first = GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=1");
  EXPECT_EQ(first.at("decision").at("verdict"), "stop");
  EXPECT_THAT(
      GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=5", 404).at("detail").get<std::string>(),
      testing::Mentions("s1/1", "step 5"));
  GetJson("/api/v1/sweeps/s1/trials/99/explanation", 404);
  GetJson("/api/v1/sweeps/s1/trials/1/explanation?step=many", 400);
}

TEST_F(TrialsTest, ATokenOfAnotherListIsABadRequest) {
  const std::string token = GetJson("/api/v1/sweeps/s1/trials?page_size=3").at("next_page_token");
  EXPECT_THAT(GetJson("/api/v1/sweeps?page_token=" + token, 400).at("detail"),
              HasSubstr("page_token"));
  GetJson("/api/v1/sweeps?page_token=nonsense", 400);
}

TEST_F(TrialsTest, PageSizesHaveBounds) {
  GetJson("/api/v1/sweeps/s1/trials?page_size=1000");
  for (const std::string size : {"0", "1001", "-1", "many", "", "1e3"})
    EXPECT_THAT(GetJson("/api/v1/sweeps/s1/trials?page_size=" + size, 400).at("detail"),
                HasSubstr("page_size"));
}

TEST_F(TrialsTest, ATrialIsShownWithItsHistory) {
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

TEST_F(TrialsTest, TheCheckpointsOfASweepAreListedInPages) {
  std::vector<Json> kept;
  std::string token;
  int pages = 0;
  do {
    const Json page = GetJson("/api/v1/sweeps/s1/checkpoints?page_size=1&page_token=" + token);
    for (const Json& checkpoint : page.at("checkpoints")) kept.push_back(checkpoint);
    token = page.at("next_page_token");
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(pages, 4);  // one for each trial
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].at("sweep"), "s1");
  EXPECT_EQ(kept[0].at("trial"), 0);
  EXPECT_EQ(kept[0].at("attempt"), 1);
  EXPECT_EQ(kept[0].at("step"), 3);
  EXPECT_EQ(kept[0].at("bytes"), 431'232);
  EXPECT_EQ(kept[0].at("executor"), "box");
  EXPECT_TRUE(kept[0].at("best").is_null());  // the trial was better at step 9
  GetJson("/api/v1/sweeps/s9/checkpoints", 404);
  GetJson("/api/v1/sweeps/s1/checkpoints?page_size=0", 400);
}

TEST_F(TrialsTest, ACheckpointsFilesAreReadPieceByPiece) {
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

TEST_F(TrialsTest, NonFiniteNumbersAreStrings) {
  const Json trial = GetJson("/api/v1/sweeps/s1/trials/3");
  EXPECT_EQ(trial.at("metrics").at("accuracy"), "-inf");
  EXPECT_EQ(trial["history"][0]["metrics"]["accuracy"], "nan");
  EXPECT_TRUE(trial.at("best").is_null());
}

TEST_F(TrialsTest, CurvesAreColumns) {
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
              HasSubstr("other"));
}

TEST_F(TrialsTest, LoggedMetricsAreInOrder) {
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

TEST_F(TrialsTest, LogsComeFromTheNewestAttemptsEnd) {
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

TEST_F(TrialsTest, LogQueriesHaveBounds) {
  const std::string logs = "/api/v1/sweeps/s1/trials/0/logs";
  EXPECT_EQ(client_->Get(logs + "?limit=1048576")->status, 200);
  for (const std::string query : {"limit=1048577", "limit=0", "attempt=0", "attempt=3", "rank=-1",
                                  "rank=99999999999999999999", "offset=x"})
    GetJson(logs + "?" + query, 400);
}

TEST_F(TrialsTest, LogsOfADisconnectedExecutorAre503) {
  backend_.refusal = Error{ErrorCode::kUnavailable, "executor box is not connected"};
  GetJson("/api/v1/sweeps/s1/trials/0/logs", 503);
}

}  // namespace
}  // namespace attune::server

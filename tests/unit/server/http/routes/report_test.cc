#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "server/http/answers/curve_bytes.h"
#include "server/http/routes/api.h"
#include "server/http/transport/gzip.h"
#include "server/store/thinned/curve_file.h"
#include "server/store/thinned/curve_table.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string FromBase64(const std::string& text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = group << 6 | static_cast<uint32_t>(kLetters.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  return bytes;
}

// The answers in a report, by the paths of their requests.
std::map<std::string, std::string> AnswersOf(const std::string& report) {
  constexpr std::string_view kBegin = "<script type=\"application/octet-stream\" data-answer=\"";
  std::map<std::string, std::string> answers;
  for (size_t at = 0; (at = report.find(kBegin, at)) != report.npos;) {
    at += kBegin.size();
    const size_t name_end = report.find("\">", at);
    const size_t end = report.find("</script>", name_end);
    const std::string name =
        std::regex_replace(report.substr(at, name_end - at), std::regex("&amp;"), "&");
    const auto body = Gunzip(FromBase64(report.substr(name_end + 2, end - name_end - 2)));
    EXPECT_TRUE(body) << name;
    answers[name] = body.value_or("");
    at = end;
  }
  return answers;
}

class ReportTest : public HttpFixture {
 protected:
  // Brings the table of thinned curves up to date, as the server's thread does.
  void Follow() {
    const EventSeq last = reader_->LastSeq().value();
    auto table = CurveTable::Open(folder_ / "attune.db", LogIdentity(0), last).value();
    EXPECT_EQ(table->Read(last, 1'000'000).value(), false);
    EXPECT_TRUE(table->Write(true).ok());
  }

  // A report with other limits. `before_ask` is called before each request to the API.
  Response GetReport(const ReportLimits& limits, const std::function<void()>& before_ask = {},
                     SweepId sweep = SweepId(1)) {
    const auto ask = [&](const Request& request) {
      if (before_ask) before_ask();
      return api_.Handle(request);
    };
    Reports reports(*reader_, &pages_, "1.2.3", ask, limits);
    return reports.Get(Request{.method = "GET", .heavy = true},
                       Target{.trial = {sweep, TrialNumber(0)}});
  }

  // What the API answers a viewer.
  std::string AskAsViewer(const std::string& path) {
    Request request{.method = "GET", .path = path.substr(0, path.find('?')), .heavy = true};
    if (path.find("/curves") != path.npos) request.headers = {{"Accept", std::string(kCurvesType)}};
    std::istringstream query(path.substr(std::min(request.path.size() + 1, path.size())));
    for (std::string pair; std::getline(query, pair, '&');)
      request.query.emplace(pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1));
    return api_.Handle(request).body;
  }

  // Adds a trial with this number of reports.
  void AddTrial(uint32_t number, int64_t reports) {
    const TrialId trial{SweepId(1), TrialNumber(number)};
    backend_.Add(TrialCreated{trial, SampleConfig(0.1), "random"});
    backend_.Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20 + number)});
    for (int64_t step = 1; step <= reports; ++step)
      backend_.Add(TrialReported{
          {trial, 1},
          {.step = Step(step), .metrics = {{"accuracy", 1 / static_cast<double>(step)}}}});
  }

  const Pages pages_{kAssets};
  Api api_{{.backend = &backend_,
            .reader = reader_.get(),
            .algorithms = &algorithms_,
            .version = "1.2.3",
            .pages = &pages_}};
};

TEST_F(ReportTest, HasTheAnswersThatTheApiGivesAViewer) {
  Follow();
  const auto answer = client_->Get("/api/v1/sweeps/s1/report");
  ASSERT_EQ(answer->status, 200) << answer->body;
  EXPECT_THAT(answer->get_header_value("Content-Type"), StartsWith("text/html"));
  EXPECT_EQ(answer->get_header_value("Content-Disposition"), "attachment; filename=\"s1.html\"");
  EXPECT_THAT(answer->body, StartsWith("<head><title>"));
  auto answers = AnswersOf(answer->body);
  const Json about = Json::parse(answers.extract("/report").mapped());
  EXPECT_EQ(about.at("sweep"), "s1");
  EXPECT_TRUE(about.contains("time"));
  for (const char* path :
       {"/sweeps/s1", "/sweeps/s1/trials", "/sweeps/s1/failures", "/sweeps/s1/lineage",
        "/sweeps/s1/activity?page_size=1000", "/sweeps/s1/importance?metric=accuracy",
        "/sweeps/s1/trials/0", "/sweeps/s1/trials/0/schedule", "/sweeps/s1/curves?points=256"}) {
    ASSERT_TRUE(answers.contains(path)) << path;
    EXPECT_EQ(answers[path], AskAsViewer(std::string("/api/v1") + path)) << path;
  }
  EXPECT_TRUE(answers.contains("/sweeps/s1/cost"));
  EXPECT_TRUE(answers.contains("/sweeps/s1/trials/0/logged?after=0&limit=10000"));
}

TEST_F(ReportTest, HidesTheValuesOfEnvEvenFromAdmins) {
  Follow();
  EXPECT_THAT(client_->Get("/api/v1/sweeps/s1/resolved")->body, HasSubstr("NCCL_DEBUG"));
  const auto answer = client_->Get("/api/v1/sweeps/s1/report");
  ASSERT_EQ(answer->status, 200) << answer->body;
  for (const auto& [path, body] : AnswersOf(answer->body))
    EXPECT_THAT(body, Not(HasSubstr("NCCL_DEBUG"))) << path;
}

TEST_F(ReportTest, HasTheNameOfTheSweepAsText) {
  const Json created = PostJson("/api/v1/sweeps", R"({
      "apiVersion": "attune/v1", "kind": "Sweep", "name": "</title><script>alert(1)</script>",
      "metric": {"name": "accuracy", "mode": "max"}, "parameters": {"lr": {"min": 0.1, "max": 1}},
      "searcher": {"name": "random"}, "scheduler": {"name": "asha", "max": 9}})",
                                201);
  ASSERT_EQ(created.at("id"), "s2");
  Follow();
  const Response report = GetReport({}, {}, SweepId(2));
  EXPECT_THAT(
      report.body,
      HasSubstr("<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; · Attune 1.2.3, "));
  EXPECT_THAT(report.body, Not(HasSubstr("<script>")));
}

TEST_F(ReportTest, ShowsOneSnapshotWhileTrialsAreAdded) {
  Follow();
  uint32_t next = 4;
  const Response report = GetReport({}, [&] { AddTrial(next++, 0); });
  ASSERT_GT(next, 8U);
  auto answers = AnswersOf(report.body);
  EXPECT_EQ(Json::parse(answers["/sweeps/s1/trials"]).at("total_size"), 4);
  int64_t counted = 0;
  const Json sweep = Json::parse(answers["/sweeps/s1"]);
  for (const auto& [state, count] : sweep.at("trials").items()) counted += count.get<int64_t>();
  EXPECT_EQ(counted, 4);
}

TEST_F(ReportTest, RefusesASweepWithMoreTrialsThanTheLimit) {
  Follow();
  EXPECT_EQ(GetReport({.trials = 4}).status, 200);
  const Response refused = GetReport({.trials = 3});
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(Json::parse(refused.body).at("type"), "urn:attune:problem:report-too-large");
}

TEST_F(ReportTest, ThinsCurvesUntilTheyFit) {
  AddTrial(4, 100);
  Follow();
  const std::string full = GetReport({}).body;
  ASSERT_TRUE(AnswersOf(full).contains("/sweeps/s1/curves?points=256"));
  const size_t limit = full.size() - 400;
  const std::string thinned = GetReport({.bytes = limit, .curve_bytes_min = 1}).body;
  EXPECT_LE(thinned.size(), limit);
  EXPECT_GT(thinned.size(), limit - 600);
  const auto answers = AnswersOf(thinned);
  EXPECT_FALSE(answers.contains("/sweeps/s1/curves?points=256"));
  EXPECT_THAT(answers,
              ::testing::Contains(::testing::Key(StartsWith("/sweeps/s1/curves?points="))));
}

// 10,000 trials that have reported three metrics 200 times.
TEST_F(ReportTest, OfTheMostTrialsHasAtMost5Megabytes) {
  constexpr uint32_t kTrials = 10'000;
  constexpr int64_t kSteps = 200;
  const std::array<std::string, 3> metrics = {"accuracy", "loss", "seconds"};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Fact> facts;
  for (uint32_t number = 4; number < kTrials; ++number) {
    const TrialId trial{SweepId(1), TrialNumber(number)};
    Config config = SampleConfig(uniform(random));
    config.Set("momentum", uniform(random));
    facts.emplace_back(TrialCreated{trial, config, "random"});
    facts.emplace_back(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20 + number)});
    Report report{.step = Step(kSteps), .seconds = Seconds(100 * uniform(random))};
    for (const std::string& metric : metrics) report.metrics[metric] = uniform(random);
    facts.emplace_back(TrialReported{{trial, 1}, report});
    facts.emplace_back(AttemptEnded{.attempt = {trial, 1}, .outcome = Outcome::kStopped});
    facts.emplace_back(TrialEnded{trial, TrialState::kStopped,
                                  "accuracy 0.25 is rank 9 of 12 at rung 9, below the best 4"});
  }
  backend_.AddAll(std::move(facts));
  Follow();
  std::vector<std::string> curves(500);  // more than a compressor looks back
  for (std::string& bytes : curves) {
    ThinnedCurve curve;
    for (int64_t step = 1; step <= kSteps; ++step) curve.AddReport(1, 0, step, uniform(random));
    bytes = curve.ToBytes();
  }
  auto file =
      OpenCurveFile(CurveFileOf(folder_ / "attune.db"), sqlite::Connection::Mode::kReadWriteCreate)
          .value();
  sqlite::Transaction write(*file, sqlite::Transaction::Kind::kWrite);
  size_t next = 0;
  for (const std::string& metric : metrics) {
    for (uint32_t number = 0; number < kTrials; ++number)
      write.Run("INSERT OR REPLACE INTO curves VALUES (1, ?, ?, 0, ?)", number, metric,
                sqlite::Blob{curves[next++ % curves.size()]});
  }
  ASSERT_TRUE(write.Commit().ok());

  const Response report = GetReport({});
  ASSERT_EQ(report.status, 200) << report.body;
  EXPECT_LE(report.body.size(), 5'000'000U);
  const auto answers = AnswersOf(report.body);
  for (const char* query : {"", "&metric=loss", "&metric=seconds"}) {
    EXPECT_TRUE(
        answers.contains("/sweeps/s1/curves?best=100" + std::string(query) + "&points=256"));
  }
  size_t of_curves = 0;
  for (const auto& [path, body] : answers) of_curves += path.find("/curves?") != path.npos ? 1 : 0;
  EXPECT_GE(of_curves, 6U);
}

TEST_F(ReportTest, LeavesPagesOfTrialsOutThatAreTooLarge) {
  Follow();
  EXPECT_TRUE(AnswersOf(GetReport({}).body).contains("/sweeps/s1/trials/1"));
  const auto answers = AnswersOf(GetReport({.trial_page_bytes = 100}).body);
  EXPECT_FALSE(answers.contains("/sweeps/s1/trials/0"));
  EXPECT_TRUE(answers.contains("/sweeps/s1/trials"));
}

TEST_F(ReportTest, WaitsForTheTableOfCurves) {
  Parsed(client_->Get("/api/v1/sweeps/s1/report"), 503);
}

TEST_F(ReportTest, NeedsTheSweepAndTheDashboard) {
  Parsed(client_->Get("/api/v1/sweeps/s9/report"), 404);
  const Pages none({});
  Reports reports(*reader_, &none, "1.2.3", {});
  EXPECT_EQ(reports.Get({}, {}).status, 404);
}

TEST_F(ReportTest, IsNotAFileOfTheDashboard) {
  EXPECT_EQ(client_->Get("/report.html")->body, "<!doctype html>the page");
}

}  // namespace
}  // namespace attune::server

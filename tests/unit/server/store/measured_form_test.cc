#include "server/store/measured_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/result.h"
#include "server/store/event_codec.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TrialReported Report(Metrics metrics) {
  return {.attempt = {TrialId(SweepId(1), TrialNumber(2)), 3},
          .report = {.step = Step(4), .metrics = std::move(metrics), .seconds = Seconds(0.25)}};
}

std::string WriteFact(const TrialReported& fact) {
  std::string text;
  WriteMeasured(fact, text);
  return text;
}

Result<Fact> Read(const std::string& payload) {
  return Decode({.kind = "trial_reported",
                 .version = 1,
                 .sweep = SweepId(1),
                 .trial = TrialNumber(2),
                 .payload = payload});
}

TEST(MeasuredForm, TheScannerReadsWhatWasWritten) {
  const std::string text = WriteFact(Report({{"accuracy", 1.0}, {"loss", 1e-310}}));
  MeasuredScanner scanner(text);
  Metrics metrics;
  while (scanner.NextMetric()) metrics.emplace(scanner.name(), scanner.value());
  EXPECT_TRUE(scanner.ok());
  EXPECT_EQ(scanner.attempt(), 3u);
  EXPECT_EQ(scanner.count(), 4);
  EXPECT_EQ(scanner.real(), 0.25);
  EXPECT_THAT(metrics, ElementsAre(Pair("accuracy", 1.0), Pair("loss", 1e-310)));
}

TEST(MeasuredForm, LoggedMetricsAreReadInAnyJsonForm) {
  const MetricsLogged logged{{TrialId(SweepId(1), TrialNumber(2)), 3}, 7, 2.25, {{"lr", 0.5}}};
  std::string text;
  WriteMeasured(logged, text);
  EXPECT_EQ(text, R"([3,7,2.25,{"lr":0.5}])");
  for (const std::string& payload : {text, std::string(R"([3, 7, 2.25, {"l\u0072": 0.5}])")}) {
    const auto read = Decode({.kind = "metrics_logged",
                              .sweep = SweepId(1),
                              .trial = TrialNumber(2),
                              .payload = payload});
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto& fact = std::get<MetricsLogged>(*read);
    EXPECT_EQ(fact.attempt, logged.attempt);
    EXPECT_EQ(fact.number, 7);
    EXPECT_EQ(fact.step, 2.25);
    EXPECT_EQ(fact.metrics, logged.metrics);
  }
}

TEST(MeasuredForm, RealsStayReals) {
  EXPECT_EQ(WriteFact(Report({{"a", 2.0}, {"b", -0.0}, {"c", 1e22}})),
            R"([3,4,0.25,{"a":2.0,"b":-0.0,"c":1e+22}])");
}

TEST(MeasuredForm, AReportWithoutMetricsIsWhole) {
  MeasuredScanner scanner("[3,4,0.25,{}]");
  EXPECT_FALSE(scanner.NextMetric());
  EXPECT_TRUE(scanner.ok());
}

TEST(MeasuredForm, NamesThatNeedEscapesComeBack) {
  const Metrics metrics = {{"a\"b", 1.0}, {"c\\d", 2.0}, {"tab\t", 3.0}, {"größe", 4.0}, {"", 5.0}};
  const auto read = Read(WriteFact(Report(metrics)));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<TrialReported>(*read).report.metrics, metrics);
}

TEST(MeasuredForm, ReportsAreReadInAnyJsonForm) {
  const auto read = Read("[ 3, 4, 0.25, { \"loss\" : 2 }, false, \"of the future\" ]");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<TrialReported>(*read).report.metrics.at("loss"), 2.0);
}

TEST(MeasuredForm, ATruncatedPayloadIsCorrupt) {
  const std::string whole = WriteFact(Report({{"loss", std::nan("")}, {"other", 0.5}}));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto read = Read(whole.substr(0, size));
    ASSERT_FALSE(read.ok()) << whole.substr(0, size);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace attune::server

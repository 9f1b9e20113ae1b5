#include "server/store/report_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/store/event_codec.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TrialReported Report(Metrics metrics) {
  return {.attempt = {TrialId(SweepId(1), TrialNumber(2)), 3},
          .report = {.step = Step(4), .metrics = std::move(metrics), .seconds = Seconds(0.25)}};
}

std::string Written(const TrialReported& fact) {
  std::string text;
  WriteReport(fact, text);
  return text;
}

Result<Fact> Read(const std::string& payload) {
  return Decode({.kind = "trial_reported",
                 .version = 2,
                 .sweep = SweepId(1),
                 .trial = TrialNumber(2),
                 .payload = payload});
}

TEST(ReportForm, TheScannerReadsWhatWasWritten) {
  const std::string text = Written(Report({{"accuracy", 1.0}, {"loss", 1e-310}}));
  ReportScanner scanner(text);
  Metrics metrics;
  while (scanner.NextMetric()) metrics.emplace(scanner.name(), scanner.value());
  EXPECT_TRUE(scanner.ok());
  EXPECT_EQ(scanner.attempt(), 3u);
  EXPECT_EQ(scanner.step(), 4);
  EXPECT_EQ(scanner.seconds(), 0.25);
  EXPECT_THAT(metrics, ElementsAre(Pair("accuracy", 1.0), Pair("loss", 1e-310)));
}

TEST(ReportForm, RealsStayReals) {
  EXPECT_EQ(Written(Report({{"a", 2.0}, {"b", -0.0}, {"c", 1e22}})),
            R"([3,4,0.25,{"a":2.0,"b":-0.0,"c":1e+22}])");
}

TEST(ReportForm, AReportWithoutMetricsIsWhole) {
  ReportScanner scanner("[3,4,0.25,{}]");
  EXPECT_FALSE(scanner.NextMetric());
  EXPECT_TRUE(scanner.ok());
}

TEST(ReportForm, NamesThatNeedEscapesComeBack) {
  const Metrics metrics = {{"a\"b", 1.0}, {"c\\d", 2.0}, {"tab\t", 3.0}, {"größe", 4.0}, {"", 5.0}};
  const auto read = Read(Written(Report(metrics)));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<TrialReported>(*read).report.metrics, metrics);
}

TEST(ReportForm, JsonThatIsWrittenOtherwiseIsReadToo) {
  const auto read = Read("[ 3, 4, 0.25, { \"loss\" : 2 }, false, \"of the future\" ]");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(std::get<TrialReported>(*read).report.metrics.at("loss"), 2.0);
}

TEST(ReportForm, ACutPayloadIsCorruptWhereverTheCutIs) {
  const std::string whole = Written(Report({{"loss", std::nan("")}, {"other", 0.5}}));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto read = Read(whole.substr(0, size));
    ASSERT_FALSE(read.ok()) << whole.substr(0, size);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace attune::server

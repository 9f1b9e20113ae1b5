#include "executor/gang/channel.h"

#include <gmock/gmock.h>

#include <cmath>

namespace attune::gang {
namespace {

using testing::HasSubstr;

TEST(LineReader, CutsLinesWhereverTheBytesWereCut) {
  LineReader reader;
  reader.Append("one\ntw");
  EXPECT_EQ(reader.Next(), "one");
  EXPECT_FALSE(reader.Next());
  reader.Append("o\n\nthree\n");
  EXPECT_EQ(reader.Next(), "two");
  EXPECT_EQ(reader.Next(), "");
  EXPECT_EQ(reader.Next(), "three");
  EXPECT_FALSE(reader.Next());
}

TEST(LineReader, LineOfTheGreatestLengthIsTaken) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax, 'x') + "\n");
  EXPECT_EQ(reader.Next()->size(), kLineBytesMax);
}

TEST(LineReader, OneByteMoreIsTooLongEvenWithoutItsNewline) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax + 1, 'x'));
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.is_too_long());
}

TEST(Channel, UnknownFieldsAndTypesAreIgnored) {
  const auto known = ParseMessage(R"({"type":"progress","step":4,"colour":"red"})");
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(std::get<Progress>(known.value()).step, 4);
  const auto unknown = ParseMessage(R"({"type":"telemetry","watts":300})");
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(std::holds_alternative<Unknown>(unknown.value()));
}

TEST(Channel, FieldThatIsMissingOrWrongIsNamed) {
  const auto error = [](const char* line) { return ParseMessage(line).error(); };
  EXPECT_THAT(error(R"({"type":"progress"})"),
              HasSubstr("'step' is missing and must be an integer"));
  EXPECT_THAT(error(R"({"type":"progress","step":1.5})"), HasSubstr("'step' is '1.5' and must be"));
  EXPECT_THAT(error(R"({"type":"progress","step":18446744073709551615})"), HasSubstr("'step'"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{"a":"x"}})"),
              HasSubstr("'metrics' has 'a' as '\"x\"' and must be"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{},"waits":1})"),
              HasSubstr("'waits' is '1' and must be true or false"));
  EXPECT_THAT(error(R"({"type":"heartbeat","silence_ms":-1})"), HasSubstr("'silence_ms'"));
  EXPECT_THAT(error(R"({"type":"error","message":"m","lost_peer":"yes"})"),
              HasSubstr("'lost_peer'"));
  EXPECT_THAT(error(R"({"type":"rendezvous","host":"h","port":0})"), HasSubstr("'port'"));
  EXPECT_THAT(error(R"({"type":"checkpoint","step":1,"path":"/p","digest":"md5:1","bytes":1})"),
              HasSubstr("'digest'"));
  EXPECT_THAT(error(R"({"step":1})"), HasSubstr("without a string 'type'"));
  EXPECT_THAT(error("[1, 2]"), HasSubstr("not a JSON object in UTF-8"));
}

std::string Problem(const std::string& line) { return ParseMessage(line).error(); }

std::string ReportLine(const std::string& seconds, const std::string& metrics = "{}") {
  return R"({"type":"report","step":1,"seconds":)" + seconds + R"(,"metrics":)" + metrics + "}";
}

TEST(Channel, SecondsThatAreNotFiniteOrNegativeAreRefused) {
  EXPECT_TRUE(ParseMessage(ReportLine("0")).ok());
  EXPECT_THAT(Problem(ReportLine("\"nan\"")),
              HasSubstr("'seconds' is '\"nan\"' and must be a finite number of at least 0"));
  EXPECT_THAT(Problem(ReportLine("\"inf\"")), HasSubstr("'seconds'"));
  EXPECT_THAT(Problem(ReportLine("-0.5")), HasSubstr("'seconds' is '-0.5'"));
  EXPECT_FALSE(ParseMessage(ReportLine("1e999")).ok());
}

TEST(Channel, ReportsAndCheckpointsBeginAtStepOne) {
  EXPECT_THAT(Problem(R"({"type":"report","step":0,"seconds":1,"metrics":{}})"),
              HasSubstr("'step' is '0' and must be an integer from 1"));
  EXPECT_THAT(Problem(R"({"type":"checkpoint","step":0,"path":"/p","digest":"","bytes":1})"),
              HasSubstr("'step' is '0'"));
  EXPECT_TRUE(ParseMessage(R"({"type":"progress","step":0})").ok());
}

TEST(Channel, IntegersThatJsonCannotCarryEverywhereAreRefused) {
  const auto progress = [](int64_t step) {
    return R"({"type":"progress","step":)" + std::to_string(step) + "}";
  };
  const auto heartbeat = [](int64_t ms) {
    return R"({"type":"heartbeat","silence_ms":)" + std::to_string(ms) + "}";
  };
  EXPECT_TRUE(ParseMessage(heartbeat(kSilenceMsMax)).ok());
  EXPECT_THAT(Problem(heartbeat(kSilenceMsMax + 1)), HasSubstr("'silence_ms'"));
  EXPECT_TRUE(ParseMessage(progress(kIntegerMax)).ok());
  EXPECT_THAT(Problem(progress(kIntegerMax + 1)), HasSubstr("'step'"));
}

TEST(Channel, NegativeBytesAreRefused) {
  EXPECT_THAT(Problem(R"({"type":"checkpoint","step":1,"path":"/p","digest":"","bytes":-1})"),
              HasSubstr("'bytes' is '-1' and must be an integer from 0"));
}

TEST(Channel, MetricsMayBeNanOrInfinite) {
  const auto message = ParseMessage(ReportLine("1", R"({"a":"nan","b":"-inf"})"));
  ASSERT_TRUE(message.ok());
  const auto& metrics = std::get<Report>(message.value()).metrics;
  EXPECT_TRUE(std::isnan(metrics[0].second));
  EXPECT_EQ(metrics[1].second, -INFINITY);
}

TEST(Channel, MetricsHaveNamesOfALimitedLength) {
  const auto named = [](const std::string& name) {
    return ReportLine("1", "{\"" + name + "\":1}");
  };
  EXPECT_TRUE(ParseMessage(named(std::string(kMetricNameBytesMax, 'x'))).ok());
  EXPECT_THAT(Problem(named(std::string(kMetricNameBytesMax + 1, 'x'))),
              HasSubstr("must be named in 1 to 256 bytes"));
  EXPECT_THAT(Problem(named("")), HasSubstr("'metrics' has one named ''"));
  EXPECT_THAT(Problem(named("a\\u0000b")), HasSubstr("without control characters"));
}

TEST(Channel, ReportHasALimitedNumberOfMetrics) {
  const auto with = [](int count) {
    std::string metrics = "{\"0\":0";
    for (int i = 1; i < count; ++i) metrics += ",\"" + std::to_string(i) + "\":0";
    return ReportLine("1", metrics + "}");
  };
  EXPECT_TRUE(ParseMessage(with(kMetricsMax)).ok());
  EXPECT_THAT(Problem(with(kMetricsMax + 1)),
              HasSubstr("'metrics' has 1001 metrics and must be at most 1000"));
}

TEST(Channel, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(Problem(ReportLine("1", "{\"a\xff\":1}")), HasSubstr("in UTF-8"));
  EXPECT_FALSE(ParseMessage(ReportLine("1", R"({"\ud800":1})")).ok());
}

TEST(Channel, QuotedLineIsShortAndPrintable) {
  const std::string quoted = ParseMessage(std::string(5000, '\x01')).error();
  EXPECT_LT(quoted.size(), 200u);
  EXPECT_THAT(quoted, HasSubstr("????"));
}

TEST(Channel, NonFiniteConfigurationValuesTravelAsText) {
  EXPECT_EQ(ConfigJson({{"a", -INFINITY}, {"b", NAN}}), "{\"a\":\"-inf\",\"b\":\"nan\"}\n");
}

}  // namespace
}  // namespace attune::gang

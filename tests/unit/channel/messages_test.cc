#include "channel/messages.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace attune::channel {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Messages, IgnoresUnknownFieldsAndTypes) {
  const auto known = ParseFromRank(R"({"type":"progress","step":4,"colour":"red"})");
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(std::get<Progress>(known.value()).step, 4);
  const auto unknown = ParseFromRank(R"({"type":"telemetry","watts":300})");
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(std::holds_alternative<Unknown>(unknown.value()));
}

TEST(Messages, NamesAFieldThatIsMissingOrWrong) {
  const auto error = [](const char* line) { return ParseFromRank(line).error().message; };
  EXPECT_THAT(error(R"({"type":"progress"})"), HasSubstr("'step' is missing"));
  EXPECT_THAT(error(R"({"type":"progress","step":1.5})"), HasSubstr("'step' is '1.5'"));
  EXPECT_THAT(error(R"({"type":"progress","step":18446744073709551615})"), HasSubstr("'step'"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{"a":"x"}})"),
              HasSubstr("'metrics' has 'a' as '\"x\"'"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{},"waits":1})"),
              HasSubstr("'waits' is '1'"));
  EXPECT_THAT(error(R"({"type":"heartbeat","silence_ms":-1})"), HasSubstr("'silence_ms'"));
  EXPECT_THAT(error(R"({"type":"error","message":"m","lost_peer":"yes"})"),
              HasSubstr("'lost_peer'"));
  EXPECT_THAT(error(R"({"type":"rendezvous","host":"h","port":0})"), HasSubstr("'port'"));
  EXPECT_THAT(error(R"({"type":"checkpoint","step":1,"path":"/p","digest":"md5:1","bytes":1})"),
              HasSubstr("'digest'"));
  EXPECT_THAT(error(R"({"step":1})"), HasSubstr("'type'"));
  EXPECT_THAT(error("[1, 2]"), HasSubstr("JSON object"));
}

std::string Problem(const std::string& line) { return ParseFromRank(line).error().message; }

std::string ReportText(const std::string& seconds, const std::string& metrics = "{}") {
  return R"({"type":"report","step":1,"seconds":)" + seconds + R"(,"metrics":)" + metrics + "}";
}

TEST(Messages, RefusesSecondsThatAreNegativeOrNotFinite) {
  EXPECT_TRUE(ParseFromRank(ReportText("0")).ok());
  EXPECT_THAT(Problem(ReportText("\"nan\"")), HasSubstr("'seconds' is '\"nan\"'"));
  EXPECT_THAT(Problem(ReportText("\"inf\"")), HasSubstr("'seconds'"));
  EXPECT_THAT(Problem(ReportText("-0.5")), HasSubstr("'seconds' is '-0.5'"));
  EXPECT_FALSE(ParseFromRank(ReportText("1e999")).ok());
}

TEST(Messages, AcceptsFractionalStepsInLogs) {
  const auto with = [](const std::string& step, const std::string& metrics = "{}") {
    return R"({"type":"log","step":)" + step + R"(,"metrics":)" + metrics + "}";
  };
  EXPECT_TRUE(ParseFromRank(with("0")).ok());
  EXPECT_TRUE(ParseFromRank(with("0.5", R"({"loss":"inf"})")).ok());
  EXPECT_THAT(Problem(with("-1")), HasSubstr("'step' is '-1'"));
  EXPECT_THAT(Problem(with("\"nan\"")), HasSubstr("'step'"));
  EXPECT_THAT(Problem(with("1", R"({"":1})")), HasSubstr("''"));
  EXPECT_THAT(Problem(with("1", R"({"a":"b"})")), HasSubstr("'metrics' has 'a'"));
}

TEST(Messages, RefusesReportsAndCheckpointsBeforeStepOne) {
  EXPECT_THAT(Problem(R"({"type":"report","step":0,"seconds":1,"metrics":{}})"),
              HasSubstr("'step' is '0'"));
  EXPECT_THAT(Problem(R"({"type":"checkpoint","step":0,"path":"/p","digest":"","bytes":1})"),
              HasSubstr("'step' is '0'"));
  EXPECT_TRUE(ParseFromRank(R"({"type":"progress","step":0})").ok());
}

TEST(Messages, RefusesIntegersThatAreNotExactInAllJsonReaders) {
  const auto progress = [](int64_t step) {
    return R"({"type":"progress","step":)" + std::to_string(step) + "}";
  };
  const auto heartbeat = [](int64_t ms) {
    return R"({"type":"heartbeat","silence_ms":)" + std::to_string(ms) + "}";
  };
  EXPECT_TRUE(ParseFromRank(heartbeat(kSilenceMsMax)).ok());
  EXPECT_THAT(Problem(heartbeat(kSilenceMsMax + 1)), HasSubstr("'silence_ms'"));
  EXPECT_TRUE(ParseFromRank(progress(kIntegerMax)).ok());
  EXPECT_THAT(Problem(progress(kIntegerMax + 1)), HasSubstr("'step'"));
}

TEST(Messages, RefusesNegativeBytes) {
  EXPECT_THAT(Problem(R"({"type":"checkpoint","step":1,"path":"/p","digest":"","bytes":-1})"),
              HasSubstr("'bytes' is '-1'"));
}

TEST(Messages, MetricsMayBeNanOrInfinite) {
  const auto message = ParseFromRank(ReportText("1", R"({"a":"nan","b":"-inf"})"));
  ASSERT_TRUE(message.ok());
  const auto& metrics = std::get<Report>(message.value()).metrics;
  EXPECT_TRUE(std::isnan(metrics[0].second));
  EXPECT_EQ(metrics[1].second, -INFINITY);
}

TEST(Messages, LimitsTheLengthOfMetricNames) {
  const auto named = [](const std::string& name) {
    return ReportText("1", "{\"" + name + "\":1}");
  };
  EXPECT_TRUE(ParseFromRank(named(std::string(kMetricNameBytesMax, 'x'))).ok());
  EXPECT_THAT(Problem(named(std::string(kMetricNameBytesMax + 1, 'x'))), HasSubstr("256 bytes"));
  EXPECT_THAT(Problem(named("")), HasSubstr("''"));
  EXPECT_THAT(Problem(named("a\\u0000b")), HasSubstr("control characters"));
}

TEST(Messages, LimitsTheNumberOfMetrics) {
  const auto with = [](int count) {
    std::string metrics = "{\"0\":0";
    for (int i = 1; i < count; ++i) metrics += ",\"" + std::to_string(i) + "\":0";
    return ReportText("1", metrics + "}");
  };
  EXPECT_TRUE(ParseFromRank(with(kMetricsMax)).ok());
  EXPECT_THAT(Problem(with(kMetricsMax + 1)), HasSubstr("'metrics' has 1001 metrics"));
}

TEST(Messages, UsesTheLastValueOfARepeatedKey) {
  const auto message =
      ParseFromRank(R"({"type":"heartbeat","type":"report","step":1,"step":2,"seconds":1,)"
                    R"("metrics":{"b":1,"a":2,"b":3}})");
  ASSERT_TRUE(message.ok()) << message.error().message;
  const auto& report = std::get<Report>(message.value());
  EXPECT_EQ(report.step, 2);
  EXPECT_THAT(report.metrics,
              testing::UnorderedElementsAre(testing::Pair("a", 2.0), testing::Pair("b", 3.0)));
}

TEST(Messages, KeepsTheOrderOfTheConfigurationAndWritesTheTypeFirst) {
  const Start start{.parameters = {{"z", 1.0}, {"a", 2.0}, {"m", 3.0}}};
  const std::string line = ToLine(start);
  EXPECT_THAT(line, testing::StartsWith(R"({"type":"start",)"));
  EXPECT_THAT(ToLine(Report{.step = 1}), testing::StartsWith(R"({"type":"report",)"));
  const auto read = ParseFromExecutor(line);
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<std::string> names;
  for (const NamedValue& each : std::get<Start>(read.value()).parameters)
    names.push_back(each.name);
  EXPECT_THAT(names, testing::ElementsAre("z", "a", "m"));
}

TEST(Messages, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(Problem(ReportText("1", "{\"a\xff\":1}")), HasSubstr("UTF-8"));
  EXPECT_FALSE(ParseFromRank(ReportText("1", R"({"\ud800":1})")).ok());
}

TEST(Messages, QuotesAShortAndPrintableLine) {
  const std::string quoted = ParseFromRank(std::string(5000, '\x01')).error().message;
  EXPECT_LT(quoted.size(), 200u);
  EXPECT_THAT(quoted, HasSubstr("????"));
}

TEST(Messages, WritesNonFiniteConfigurationValuesAsText) {
  EXPECT_EQ(ToJson({{"a", -INFINITY}, {"b", NAN}}), "{\"a\":\"-inf\",\"b\":\"nan\"}\n");
}

// ---- executor -> rank

TEST(StepOfTime, IsTheValueRoundedDownAndNeverDecreases) {
  EXPECT_EQ(StepOfTime("samples", 7.9, 3).value(), 7);
  EXPECT_EQ(StepOfTime("samples", 3.9, 3).value(), 3);
  EXPECT_EQ(StepOfTime("samples", 0.5, 0).value(), 0);
  EXPECT_THAT(StepOfTime("samples", 2.9, 3).error().message,
              AllOf(HasSubstr("'samples'"), HasSubstr("2.9 after 3")));
  EXPECT_THAT(StepOfTime("samples", std::nullopt, 3).error().message,
              AllOf(HasSubstr("'samples'"), HasSubstr("report")));
  for (const double value : {-1.0, 1e300, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(StepOfTime("samples", value, 0).error().message, HasSubstr("finite"));
  }
}

constexpr const char* kStart =
    R"({"type": "start", "protocol": 1, "sweep": "s1", "trial": 17, "attempt": 2,
        "rank": 1, "world_size": 2, "local_rank": 1, "local_world_size": 2,
        "device": "cuda:1", "devices": ["cuda:1", "cuda:3"], "cpus": 1, "seed": 7234917231, "new_field": [],
        "config": {"width": 32, "lr": 0.1, "optimizer": "sgd", "nesterov": true},
        "milestone": 3, "max_step": 27, "checkpoint_every": 0,
        "checkpoint_dir": "/data/checkpoints", "resume": {"step": 9, "path": "/data/step-9"}})";

std::string RefusedByRank(const std::string& line) {
  return ParseFromExecutor(line).error().message;
}

TEST(Messages, ReadsAllFieldsOfAStart) {
  const auto start = std::get<Start>(ParseFromExecutor(kStart).value());
  EXPECT_EQ(start.sweep, "s1");
  EXPECT_EQ(start.trial, 17);
  EXPECT_EQ(start.attempt, 2);
  EXPECT_EQ(start.rank, 1);
  EXPECT_EQ(start.device, "cuda:1");
  EXPECT_THAT(start.devices, ElementsAre("cuda:1", "cuda:3"));
  EXPECT_EQ(start.seed, 7234917231u);
  EXPECT_EQ(ToJson(start.parameters),
            "{\"width\":32,\"lr\":0.1,\"optimizer\":\"sgd\",\"nesterov\":true}\n");
  EXPECT_EQ(start.milestone, 3);
  EXPECT_EQ(start.max_step, 27);
  ASSERT_TRUE(start.resume);
  EXPECT_EQ(start.resume->step, 9);
  EXPECT_EQ(start.resume->digest, "");
}

TEST(Messages, RefusesAnotherProtocolVersion) {
  EXPECT_THAT(RefusedByRank(R"({"type": "start", "protocol": 2})"), HasSubstr("'protocol' is '2'"));
}

TEST(Messages, NamesAWrongFieldOfAStart) {
  const auto with = [](const std::string& fields) {
    return RefusedByRank(R"({"type":"start","protocol":1,)" + fields + "}");
  };
  EXPECT_THAT(with(R"("rank":2,"world_size":2,"config":{})"), HasSubstr("'rank' is '2'"));
  EXPECT_THAT(with(R"("rank":0.5,"world_size":2,"config":{})"), HasSubstr("'rank' is '0.5'"));
  EXPECT_THAT(with(R"("rank":0,"world_size":1)"), HasSubstr("'config' is missing"));
  EXPECT_THAT(with(R"("rank":0,"world_size":1,"config":{"a":[1]})"),
              HasSubstr("'config' has 'a' as '[1]'"));
  EXPECT_THAT(with(R"("rank":0,"world_size":1,"config":{},"resume":{"path":"/p"})"),
              HasSubstr("'resume' is invalid: 'step' is missing"));
  EXPECT_THAT(with(R"("rank":0,"world_size":1,"config":{},"seed":-1)"), HasSubstr("'seed'"));
  for (const char* devices : {"[]", "[0]", R"("cuda:0")"}) {
    EXPECT_THAT(with(R"("rank":0,"world_size":1,"config":{},"devices":)" + std::string(devices)),
                HasSubstr("'devices' is"));
  }
}

TEST(Messages, AcceptsZeroForNoneInAStart) {
  const auto start = ParseFromExecutor(
      R"({"type":"start","protocol":1,"rank":0,"world_size":1,"config":{},"cpus":0,"seed":0,
          "milestone":0,"max_step":0,"checkpoint_every":0,"trial":0,"checkpoint_dir":""})");
  ASSERT_TRUE(start.ok()) << start.error().message;
  EXPECT_EQ(std::get<Start>(start.value()).cpus, 0);
  EXPECT_TRUE(std::get<Start>(start.value()).devices.empty());
}

TEST(Messages, AcceptsTheLargestStepOfASweepFile) {
  const std::string line = ToLine(Start{.milestone = INT64_MAX, .max_step = INT64_MAX});
  const auto start = ParseFromExecutor(line);
  ASSERT_TRUE(start.ok()) << start.error().message;
  EXPECT_EQ(std::get<Start>(start.value()).max_step, INT64_MAX);
}

TEST(Messages, RefusesAnUnknownAction) {
  EXPECT_THAT(RefusedByRank(R"({"type": "verdict", "step": 1, "action": "explode"})"),
              HasSubstr(R"('action' is '"explode"')"));
}

TEST(Messages, RefusesTextThatIsNoMessage) {
  for (const char* line : {"hello", "[1]", R"({"kind": 1})", R"({"type": 1})", "\"\xff\""}) {
    EXPECT_FALSE(ParseFromExecutor(line).ok()) << line;
    EXPECT_FALSE(ParseFromRank(line).ok()) << line;
  }
  EXPECT_TRUE(std::holds_alternative<Unknown>(ParseFromExecutor(R"({"type":"later"})").value()));
}

// ---- both

// Expects that the message is one line, and that reading and writing it again gives the same line.
template <typename Message>
void ExpectRoundTrip(const Message& message) {
  const std::string line = ToLine(message);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  if constexpr (std::is_constructible_v<FromRank, Message>) {
    const auto read = ParseFromRank(std::string_view(line).substr(0, line.size() - 1));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToLine(std::get<Message>(read.value())), line);
  }
  if constexpr (std::is_constructible_v<FromExecutor, Message>) {
    const auto read = ParseFromExecutor(std::string_view(line).substr(0, line.size() - 1));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToLine(std::get<Message>(read.value())), line);
  }
}

TEST(Messages, AreTheSameAfterARoundTrip) {
  ExpectRoundTrip(std::get<Start>(ParseFromExecutor(kStart).value()));
  Start multi_host{.world_size = 4, .local_world_size = 2, .address = "10.0.0.3"};
  EXPECT_EQ(std::get<Start>(ParseFromExecutor(ToLine(multi_host)).value()).address, "10.0.0.3");
  ExpectRoundTrip(multi_host);
  ExpectRoundTrip(Rendezvous{"::1", 65535});
  for (const Action action : {Action::kContinue, Action::kStop, Action::kPause}) {
    ExpectRoundTrip(Verdict{.step = 3, .action = action, .milestone = 9});
  }
  ExpectRoundTrip(Yield{});
  ExpectRoundTrip(Report{.step = 1,
                         .metrics = {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}, {"d", 0.1}},
                         .seconds = 1.5,
                         .waits = true});
  ExpectRoundTrip(Report{.step = kIntegerMax});
  ExpectRoundTrip(Logged{.step = 2.25, .metrics = {{"a", NAN}, {"b", 0.1}}});
  ExpectRoundTrip(CheckpointSaved{.step = 1,
                                  .path = "/p\"q",
                                  .digest = "sha256:" + std::string(64, 'a'),
                                  .bytes = kIntegerMax});
  ExpectRoundTrip(Progress{4});
  ExpectRoundTrip(Heartbeat{std::chrono::milliseconds(kSilenceMsMax)});
  ExpectRoundTrip(Waiting{.ranks = {1, 3}, .step = 7});
  ExpectRoundTrip(Leaving{"bad config"});
  ExpectRoundTrip(ErrorText{"two\nlines", true});
  ExpectRoundTrip(ErrorText{.message = "disk full", .disk_full = true});
  ExpectRoundTrip(Done{});
}

TEST(Messages, WritesErrorTextThatIsNotUtf8) {
  const auto message = ParseFromRank(ToLine(ErrorText{"a \xff"}));
  ASSERT_TRUE(message.ok()) << message.error().message;
  EXPECT_THAT(std::get<ErrorText>(message.value()).message, testing::StartsWith("a "));
}

TEST(Messages, CutsLongErrorTextBetweenCharacters) {
  const std::string filling(kErrorTextBytesMax - 1, 'x');
  const auto text = [](const std::string& message) {
    return std::get<ErrorText>(ParseFromRank(ToLine(ErrorText{message})).value()).message;
  };
  EXPECT_EQ(text(filling + "y" + "z"), filling + "y");
  EXPECT_EQ(text(filling + "\xc3\xa9"), filling);
}

}  // namespace
}  // namespace attune::channel

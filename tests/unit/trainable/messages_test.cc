#include "trainable/channel/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attune/error.h"

namespace attune::trainable {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kStart =
    R"({"type": "start", "protocol": 1, "sweep": "s1", "trial": 17, "attempt": 2,
        "rank": 1, "world_size": 2, "local_rank": 1, "local_world_size": 2,
        "device": "cpu", "cpus": 1, "seed": 7234917231, "new_field": [],
        "config": {"lr": 0.1, "width": 32, "optimizer": "sgd", "nesterov": true},
        "milestone": 3, "max_step": 27, "checkpoint_every": 0,
        "checkpoint_dir": "/data/checkpoints", "resume": {"step": 9, "path": "/data/step-9"}})";

TEST(Messages, StartIsReadInFull) {
  const auto start = std::get<Start>(ParseFromExecutor(kStart));
  EXPECT_EQ(start.trial, 17);
  EXPECT_EQ(start.attempt, 2);
  EXPECT_EQ(start.rank, 1);
  EXPECT_EQ(start.seed, 7234917231u);
  EXPECT_EQ(start.config.Real("lr"), 0.1);
  EXPECT_EQ(start.config.Int("width"), 32);
  EXPECT_EQ(start.milestone, 3);
  EXPECT_EQ(start.max_step, 27);
  ASSERT_TRUE(start.resume);
  EXPECT_EQ(start.resume->step, 9);
}

TEST(Messages, StartSurvivesARoundTrip) {
  const auto start = std::get<Start>(ParseFromExecutor(kStart));
  const auto again = std::get<Start>(ParseFromExecutor(ToLine(start)));
  EXPECT_EQ(ToLine(again), ToLine(start));
}

TEST(Messages, AnotherProtocolVersionIsNamed) {
  EXPECT_THAT([] { ParseFromExecutor(R"({"type": "start", "protocol": 2})"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("protocol 1"), HasSubstr("2"))));
}

TEST(Messages, ARankOutsideOfItsGangIsRefused) {
  EXPECT_THAT(
      [] {
        ParseFromExecutor(
            R"({"type": "start", "protocol": 1, "rank": 2, "world_size": 2, "config": {}})");
      },
      ThrowsMessage<Error>(HasSubstr("rank 2 of 2")));
}

TEST(Messages, UnknownTypesAreKnownToBeUnknown) {
  EXPECT_TRUE(std::holds_alternative<std::monostate>(ParseFromExecutor(R"({"type": "later"})")));
}

TEST(Messages, MalformedLinesAreQuoted) {
  for (const char* line : {"hello", "[1]", R"({"kind": 1})", R"({"type": 1})"}) {
    EXPECT_THAT([line] { ParseFromExecutor(line); }, ThrowsMessage<Error>(HasSubstr(line)));
  }
  EXPECT_THAT([] { ParseFromExecutor(R"({"type": "verdict", "step": 1, "action": "explode"})"); },
              ThrowsMessage<Error>(HasSubstr("explode")));
}

TEST(Messages, MetricsThatJsonCannotCarryAreStrings) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string line =
      ToLine(ReportLine{.step = 1, .metrics = {{"a", std::nan("")}, {"b", inf}, {"c", -inf}}});
  EXPECT_THAT(line, AllOf(HasSubstr(R"("a":"nan")"), HasSubstr(R"("b":"inf")"),
                          HasSubstr(R"("c":"-inf")")));
  const auto report = std::get<ReportLine>(ParseFromRank(line));
  EXPECT_TRUE(std::isnan(report.metrics.at("a")));
  EXPECT_EQ(report.metrics.at("c"), -inf);
}

TEST(Messages, MetricsThatAnExecutorRefusesAreNotSent) {
  ReportLine report{.step = 1};
  report.metrics[std::string(kMetricNameBytesMax, 'x')] = 1;
  EXPECT_NO_THROW(ToLine(report));
  report.metrics = {{std::string(kMetricNameBytesMax + 1, 'x'), 1}};
  EXPECT_THROW(ToLine(report), Error);
  report.metrics = {{"", 1}};
  EXPECT_THROW(ToLine(report), Error);
  report.metrics = {{"a\nb", 1}};
  EXPECT_THROW(ToLine(report), Error);
  report.metrics.clear();
  for (std::size_t i = 0; i < kMetricsMax; ++i) report.metrics[std::to_string(i)] = 1;
  EXPECT_NO_THROW(ToLine(report));
  report.metrics["one more"] = 1;
  EXPECT_THROW(ToLine(report), Error);
}

TEST(Messages, ALineIsOneLineWhateverAnExceptionSays) {
  const std::string line = ToLine(ErrorLine{"two\nlines \xff"});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(std::get<ErrorLine>(ParseFromRank(line)).message, HasSubstr("two\nlines"));
}

TEST(Messages, AVerdictSurvivesARoundTrip) {
  const Verdict verdict{.step = 3, .action = Verdict::Action::kPause, .milestone = 9};
  const auto again = std::get<Verdict>(ParseFromExecutor(ToLine(verdict)));
  EXPECT_EQ(again.action, Verdict::Action::kPause);
  EXPECT_EQ(again.milestone, 9);
}

}  // namespace
}  // namespace attune::trainable

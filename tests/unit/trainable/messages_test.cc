#include "trainable/channel/messages.h"

#include <gmock/gmock.h>

#include <cmath>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Messages, AStartCarriesTheConfigurationAsTheProgramReadsIt) {
  const Config config({{"lr", 0.1}, {"width", std::int64_t{32}}, {"name", "sgd"}, {"on", true}});
  const auto line = ToLine(channel::Start{.seed = 7, .parameters = ToParameters(config)});
  const Start start = std::get<channel::Start>(channel::ParseFromExecutor(line).value());
  EXPECT_EQ(start.seed, 7u);
  EXPECT_TRUE(start.config == config) << start.config.ToJson();
}

TEST(Messages, MetricsThatAnExecutorRefusesAreNotSent) {
  ReportLine report{.step = 1};
  report.metrics[std::string(channel::kMetricNameBytesMax, 'x')] = 1;
  EXPECT_NO_THROW(ToLine(report));
  report.metrics = {{std::string(channel::kMetricNameBytesMax + 1, 'x'), 1}};
  EXPECT_THROW(ToLine(report), Error);
  report.metrics = {{"", 1}};
  EXPECT_THROW(ToLine(report), Error);
  report.metrics = {{"a\nb", 1}};
  EXPECT_THAT([&] { ToLine(report); },
              ThrowsMessage<Error>(HasSubstr("Report: 'metrics' has the name 'a?b'")));
  report.metrics.clear();
  for (int i = 0; i < channel::kMetricsMax; ++i) report.metrics[std::to_string(i)] = 1;
  EXPECT_NO_THROW(ToLine(report));
  report.metrics["one more"] = 1;
  EXPECT_THROW(ToLine(report), Error);
}

TEST(Messages, WhatAnExecutorRefusesIsNotLogged) {
  EXPECT_NO_THROW(ToLogLine(0, {{"a", std::nan("")}}));
  EXPECT_THAT(
      [] {
        ToLogLine(-0.5, {{"a", 1}});
      },
      ThrowsMessage<Error>(HasSubstr("Log: the step")));
  EXPECT_THROW(ToLogLine(std::nan(""), {{"a", 1}}), Error);
  EXPECT_THAT(
      [] {
        ToLogLine(1, {{"", 1}});
      },
      ThrowsMessage<Error>(HasSubstr("Log: 'metrics' has the name ''")));
}

}  // namespace
}  // namespace attune::inline sdk::trainable

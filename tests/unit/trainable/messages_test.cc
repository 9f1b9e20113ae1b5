#include "trainable/channel/messages.h"

#include <gmock/gmock.h>

#include "attune/error.h"

namespace attune::trainable {
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
              ThrowsMessage<Error>(HasSubstr("Report: 'metrics' has one named 'a?b'")));
  report.metrics.clear();
  for (int i = 0; i < channel::kMetricsMax; ++i) report.metrics[std::to_string(i)] = 1;
  EXPECT_NO_THROW(ToLine(report));
  report.metrics["one more"] = 1;
  EXPECT_THROW(ToLine(report), Error);
}

}  // namespace
}  // namespace attune::trainable

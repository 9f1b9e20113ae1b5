#include "trainable/channel/messages.h"

#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

template <typename To, typename From>
To Convert(const From& value) {
  return std::visit([](const auto& each) { return To(each); }, value);
}

Config ToConfig(const std::vector<channel::NamedValue>& parameters) {
  std::map<std::string, Config::Value> values;
  for (const auto& [name, value] : parameters) values[name] = Convert<Config::Value>(value);
  return Config(std::move(values));
}

}  // namespace

Start::Start(channel::Start message)
    : channel::Start(std::move(message)), config(ToConfig(parameters)) {
  if (devices.empty()) devices = {device};
}

std::string ToLine(const ReportLine& report) {
  const channel::Report line{.step = report.step,
                             .metrics = {report.metrics.begin(), report.metrics.end()},
                             .seconds = report.seconds,
                             .waits = report.waits};
  if (const std::string problem = channel::MetricsProblem(line.metrics); !problem.empty()) {
    throw Error("Report: " + problem);
  }
  return ToLine(line);
}

std::string ToLogLine(double step, const Metrics& metrics) {
  if (!std::isfinite(step) || step < 0) {
    throw Error("Log: the step is " + std::to_string(step) + " and must be finite and at least 0");
  }
  const channel::Logged line{.step = step, .metrics = {metrics.begin(), metrics.end()}};
  if (const std::string problem = channel::MetricsProblem(line.metrics); !problem.empty()) {
    throw Error("Log: " + problem);
  }
  return ToLine(line);
}

std::string ToLine(const CheckpointInfo& checkpoint) {
  return ToLine(channel::CheckpointSaved{.step = checkpoint.step,
                                         .path = checkpoint.path.string(),
                                         .digest = checkpoint.digest,
                                         .bytes = static_cast<std::uint64_t>(checkpoint.bytes)});
}

std::vector<channel::NamedValue> ToParameters(const Config& config) {
  std::vector<channel::NamedValue> parameters;
  for (const auto& [name, value] : config.values()) {
    parameters.push_back({name, Convert<channel::Value>(value)});
  }
  return parameters;
}

}  // namespace attune::inline sdk::trainable

#pragma once

#include <string>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/metrics.h"
#include "channel/messages.h"

// The messages of channel/messages.h, with the SDK's types.
namespace attune::inline sdk::trainable {

using channel::FromExecutor;
using channel::Rendezvous;
using channel::Verdict;

// The `start` message, with the configuration as a Config and with all lists filled in.
struct Start : channel::Start {
  Start(channel::Start message);

  Config config;
};

struct ReportLine {
  std::int64_t step = 0;
  Metrics metrics;
  double seconds = 0;
  bool waits = false;  // rank 0 waits for a verdict
};

// These throw Error if an executor would refuse a metric's name, or if there are too many metrics.
std::string ToLine(const ReportLine& report);
std::string ToLogLine(double step, const Metrics& metrics);
std::string ToLine(const CheckpointInfo& checkpoint);

std::vector<channel::NamedValue> ToParameters(const Config& config);

}  // namespace attune::inline sdk::trainable

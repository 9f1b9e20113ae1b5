#pragma once

#include <string>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/metrics.h"
#include "channel/messages.h"

// The messages of channel/messages.h in the SDK's own values.
namespace attune::inline sdk::trainable {

using channel::FromExecutor;
using channel::Rendezvous;
using channel::Verdict;

// What `start` says, with the configuration as a program reads it, and no list left out.
struct Start : channel::Start {
  Start(channel::Start said);

  Config config;
};

struct ReportLine {
  std::int64_t step = 0;
  Metrics metrics;
  double seconds = 0;
  bool waits = false;  // rank 0 goes no further before it has a verdict
};

// These throw Error where a metric's name is one that an executor refuses, or there are too many.
std::string ToLine(const ReportLine& report);
std::string ToLogLine(double step, const Metrics& metrics);
std::string ToLine(const CheckpointInfo& checkpoint);

std::vector<channel::NamedValue> ToParameters(const Config& config);

}  // namespace attune::inline sdk::trainable

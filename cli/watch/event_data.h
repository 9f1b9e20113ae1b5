#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/client/event_stream.h"
#include "cli/json.h"
#include "rest/codec.h"

namespace attune::cli {

// The members of events that the command line uses (docs/reference/rest-api.md, Events). Only
// event_data.cc knows their names. A member that an event does not have is empty or 0.
struct EventData {
  std::string time;
  std::string actor;
  std::string state;
  std::string reason;

  // Members of sweep events.
  std::string end_state;
  int64_t max_trials = 0;
  int64_t max_step = 0;
  std::vector<std::string> changes;

  // Members of trial events.
  std::optional<int64_t> trial;
  int64_t attempt = 0;
  int64_t step = 0;
  std::string outcome;
  std::string failure;
  Json config;
  std::map<std::string, rest::Real> metrics;

  // Members of executor events.
  std::string executor;
  std::optional<bool> drained;
  std::optional<bool> quarantined;
  std::string until;                          // the end of the quarantine
  std::optional<std::string> health_problem;  // empty: the host is healthy again
  int64_t cpus = 0;
  int64_t gpus = 0;
  int64_t memory_bytes = 0;
};

EventData ReadEvent(const ServerEvent& event);

}  // namespace attune::cli

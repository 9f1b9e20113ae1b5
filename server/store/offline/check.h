#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"

namespace attune::server {

// One thing that was looked at: what it is, how much of it there was, and what is wrong with it.
struct Finding {
  std::string what;
  std::string seen;                  // "1,204 events"
  std::optional<std::string> fault;  // a sentence, with what to do
};

// Looks over a database without changing it, on one snapshot of it, while a server may be running:
// SQLite's own check of the file, the log's order and payloads, and whether the tables for people
// are what the log says. An error when it cannot be read at all.
Result<std::vector<Finding>> CheckDatabase(const std::string& path);

// Derives every proposal and verdict again from the events before it (core/brain/audit.h).
Result<Finding> CheckDecisions(const std::string& path, const Algorithms& algorithms);

}  // namespace attune::server

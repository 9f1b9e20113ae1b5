#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"

namespace attune::server {

// The result of one check.
struct Finding {
  std::string what;
  std::string seen;                  // "1,204 events"
  std::optional<std::string> fault;  // what is wrong and what to do; nullopt: nothing
};

// Checks one snapshot of a database without changing it. A server may be running. Runs SQLite's own
// check of the file, checks the order and payloads of the log, and compares the tables for people
// with the log. Returns an error if the database cannot be read at all.
Result<std::vector<Finding>> CheckDatabase(const std::string& path);

// Derives every proposal and verdict again from the events before it (core/brain/audit.h).
Result<Finding> CheckDecisions(const std::string& path, const Algorithms& algorithms);

}  // namespace attune::server

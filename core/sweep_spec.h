#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/objective.h"
#include "core/search_space.h"
#include "core/value.h"

namespace attune {

// A searcher or a scheduler by name, with every option of its table (core/algorithms.h).
struct AlgorithmSpec {
  std::string name;
  std::map<std::string, Value, std::less<>> options;
  bool operator==(const AlgorithmSpec&) const = default;
};

// What a trial runs. Started with this argv, never through a shell; ${args}, ${config} and
// ${param.NAME} are replaced by the executor.
struct Program {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string working_directory;  // absolute
  bool operator==(const Program&) const = default;
};

struct Resources {
  int cpus = 0;
  int gpus = 0;
  int64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

struct GangSpec {
  int workers = 1;  // world size
  Resources per_worker{.cpus = 1};
  bool operator==(const GangSpec&) const = default;
};

struct FailurePolicy {
  int max_restarts = 3;        // of a trial, after failures of its own
  int max_failed_trials = 10;  // one more, and the sweep fails
  Seconds stall_timeout{600};  // a rank silent for longer has failed
  bool operator==(const FailurePolicy&) const = default;
};

// A sweep, complete: every default is filled in. What a sweep file resolves to.
struct SweepSpec {
  std::string name;
  std::vector<std::string> tags;
  Program program;
  Objective objective;
  SearchSpace space;
  std::vector<Config> initial_points;  // tried first, in this order
  AlgorithmSpec searcher;
  uint64_t seed = 0;  // below 2^53
  AlgorithmSpec scheduler;
  Step max_step{0};  // a trial that reaches it is complete; 0: the program ends itself
  GangSpec gang;
  int max_trials = 0;             // 0: until the searcher has no more
  int max_concurrent_trials = 0;  // 0: as many as fit
  Step checkpoint_every{0};       // 0: at milestones and at the end
  FailurePolicy failure;

  bool operator==(const SweepSpec&) const = default;
};

}  // namespace attune

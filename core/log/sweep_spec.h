#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/log/labels.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"
#include "core/space/value.h"

namespace attune {

// A searcher or a scheduler by name, with every option of its table (core/algorithms/algorithms.h).
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
  // A regular expression (RE2): lines of rank 0's output that are reports, with its named groups as
  // metrics and `step`. Empty: the program reports by itself.
  std::string report_pattern;
  bool operator==(const Program&) const = default;
};

struct Resources {
  int cpus = 0;
  int gpus = 0;
  int64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

// Where a gang goes when several executors have room.
enum class PlacementPolicy {
  kPack,     // where it fills best, so that large holes stay whole
  kSpread,   // where most is free, so that gangs share a host as little as possible
  kOneHost,  // as kPack, and never on several
};

std::string_view Name(PlacementPolicy policy);

// Which gang goes on with more workers where several have fewer than they would like to have.
enum class GrowthPolicy {
  kOldest,
  kBest,  // of the trial whose first objective is best so far
  kEven,  // the smallest, and no gang has more than its share of what the sweep can have
};

std::string_view Name(GrowthPolicy policy);

struct GangSpec {
  int workers = 1;      // world size
  int min_workers = 0;  // it starts with so few where there is no room for more; 0: with all or not
  // Of an attempt with fewer than `workers`, since it was decided on: only then may it give way to
  // one with more, because to start anew costs time.
  Seconds grow_after{60};
  GrowthPolicy grow = GrowthPolicy::kOldest;
  Resources per_worker{.cpus = 1};
  int gpu_percent = 100;  // below 100: its one worker takes so much of one GPU (per_worker.gpus: 1)
  PlacementPolicy placement = PlacementPolicy::kPack;
  Requirements required;  // labels of the executors that it runs on
  bool operator==(const GangSpec&) const = default;
};

// 0.25: a quarter of one.
inline double GpusPerWorker(const GangSpec& gang) {
  return gang.per_worker.gpus * gang.gpu_percent / 100.0;
}

// As gpus_per_worker of a sweep file has them. False: neither whole nor hundredths of one.
bool SetGpus(const Value& gpus, GangSpec& gang);

// Which checkpoints are made and which stay. Beside what the policy keeps, a checkpoint stays while
// something refers to it: a trial that will go on from it, a clone, the sweep's best, a person.
struct CheckpointPolicy {
  Step every{0};      // 0: at milestones and at the end
  int keep_last = 1;  // newest ones of each trial; at least 1 while it can go on
  int keep_best = 1;  // of each trial, by the objective at their step
  bool operator==(const CheckpointPolicy&) const = default;
};

// What follows where a rank has failed and something stands in a log of its gang.
enum class LogAction {
  kRetryElsewhere,  // the trial goes on on other executors, at no cost
  kExcludeHost,     // and so does the sweep
  kFail,            // the trial has failed: it would do so again
};

std::string_view Name(LogAction action);

struct LogPolicy {
  std::string pattern;  // a regular expression (RE2), found anywhere in a line
  LogAction action = LogAction::kFail;
  bool operator==(const LogPolicy&) const = default;
};

struct FailurePolicy {
  int max_restarts = 3;           // of a trial, after failures of its own
  int max_failed_trials = 10;     // one more, and the sweep fails
  Seconds backoff{10};            // before the first restart, doubled for each further one
  Seconds stall_timeout{600};     // a rank silent for longer has failed
  std::vector<LogPolicy> on_log;  // the first that is found counts
  bool operator==(const FailurePolicy&) const = default;
};

// A trial is over when a metric has come to rest: when none of its last `patience` reports was
// better than the best before them by more than min_delta, or, where there is a standard deviation,
// when that of their values is no larger.
struct Plateau {
  Objective metric;  // that of the sweep, or any other that is reported
  int patience = 1;  // in reports
  double min_delta = 0;
  std::optional<double> std;  // population standard deviation, in units of the metric
  Step grace_period{1};       // first step at which a trial may stop
  bool operator==(const Plateau&) const = default;
};

// A trial is over when a metric has come to a bound; one of them or both. NaN comes to none.
struct Threshold {
  std::string metric;
  std::optional<double> at_least;
  std::optional<double> at_most;
  Step grace_period{1};  // first step at which a trial may stop
  bool operator==(const Threshold&) const = default;
};

// When a sweep or a trial is over. Of each, 0 means: no such limit.
struct StopPolicy {
  int max_trials = 0;         // without it, until the searcher has no more
  Seconds max_time{0};        // of the sweep, while it is not paused
  double max_gpu_hours = 0;   // of all its gangs
  int patience = 0;           // trials that end in a row while no better report comes
  Seconds max_trial_time{0};  // training time of a trial
  int trial_patience = 0;     // reports of a trial in a row that are its best in no objective
  // Of the objectives, in their order: the sweep is over when one report has reached each one that
  // is there. Nothing stands for those after the last.
  std::vector<std::optional<double>> targets;
  std::optional<Plateau> plateau;
  std::vector<Threshold> thresholds;
  bool operator==(const StopPolicy&) const = default;
};

// A sweep, complete: every default is filled in. What a sweep file resolves to.
struct SweepSpec {
  std::string name;
  std::vector<std::string> tags;
  Program program;
  std::vector<Objective> objectives = std::vector<Objective>(1);  // at least one
  std::vector<Constraint> constraints;  // a report that violates one is nobody's best
  SearchSpace space;
  std::vector<Config> initial_points;  // tried first, in this order
  AlgorithmSpec searcher;
  uint64_t seed = 0;  // below 2^53
  AlgorithmSpec scheduler;
  // The metric that time is measured in: a report's step is its value, rounded down, and so are all
  // steps of the sweep. Empty: steps are counted by the program.
  std::string time_attr;
  Step max_step{0};  // a trial that reaches it is complete; 0: the program ends itself
  GangSpec gang;
  int max_concurrent_trials = 0;  // 0: as many as fit
  int priority = 0;               // a sweep of a higher one is served first
  CheckpointPolicy checkpoint;
  FailurePolicy failure;
  StopPolicy stop;
  std::vector<SweepId> warm_start;  // earlier sweeps, whose results its searcher begins with

  // The first one: what a scheduler judges unless it says otherwise.
  const Objective& objective() const { return objectives.front(); }

  // The metrics that each report has: those of the objectives, of the constraints, of the limits,
  // then the one that time is measured in.
  std::vector<std::string> ReportedMetrics() const;

  // Without a program trials are asked for and told from outside.
  bool External() const { return program.command.empty(); }

  bool operator==(const SweepSpec&) const = default;
};

// The step that a value of `time_attr` stands for; nullopt: none, because it is below 1, or too
// large to be exact, or no number.
std::optional<Step> StepOfTime(double value);

}  // namespace attune

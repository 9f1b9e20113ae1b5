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

// A snapshot with patches that parameters chose.
struct PatchedCode {
  std::vector<std::string> patches;  // paths in the unpatched snapshot, in the order of application
  std::string digest;                // of the patched snapshot
  bool operator==(const PatchedCode&) const = default;
};

// Files that executors fetch from the server before a trial starts. The client that creates the
// sweep takes a snapshot of them.
struct CodeSpec {
  std::string path = ".";            // of the client's folder
  std::vector<std::string> include;  // see code::CollectOptions
  std::vector<std::string> exclude;
  bool writable = false;  // trials get copies of the files instead of links to them
  std::string digest;     // of the snapshot: sha256: and 64 hex digits; empty: there is none yet
  std::string commit;     // the git commit that was checked out; empty: unknown
  bool dirty = false;     // the files differ from the commit
  // One for each combination of patches that a configuration can choose (Parameter::patches).
  std::vector<PatchedCode> patched;
  bool operator==(const CodeSpec&) const = default;
};

// The program that runs containers on a host.
enum class ContainerEngine {
  kAny,  // the first of the following that the host has
  kPodman,
  kDocker,
  kApptainer,
};

std::string_view Name(ContainerEngine engine);

// The packages of the program: either `python`, which a host installs before the first trial starts
// there, or `container`, in which the ranks run.
struct EnvironmentSpec {
  // A file of requirements, uv.lock or pyproject.toml. Absolute; with code: relative to its root.
  std::string python;
  std::string wheels;     // a folder of wheels, to install without a network; empty: none
  std::string container;  // the name of an image
  ContainerEngine engine = ContainerEngine::kAny;
  bool operator==(const EnvironmentSpec&) const = default;
};

// A file that a host downloads before the first trial starts there. Ranks find it at the path in
// their environment variable DataVariable(name).
struct DataSpec {
  std::string name;
  std::string url;     // http, https or file
  std::string sha256;  // 64 hex digits in lower case
  bool operator==(const DataSpec&) const = default;
};

// ATTUNE_DATA_ and the name in upper case, with _ in place of - and of points.
std::string DataVariable(std::string_view name);

// The program of a trial. The executor replaces ${args}, ${config} and ${param.NAME} in `command`
// and starts it without a shell.
struct Program {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  // Names of secrets, whose values are environment variables too. The server keeps the values
  // outside of the log.
  std::vector<std::string> secrets;
  std::optional<CodeSpec> code;             // nullopt: the program is on every host
  std::optional<EnvironmentSpec> packages;  // nullopt: the packages are on every host
  std::vector<DataSpec> data;
  std::string working_directory;  // absolute; with code: relative to its root, empty: the root
  // A regular expression (RE2). Lines of rank 0's output that match it are reports; its named
  // groups are the metrics and `step`. Empty: the program reports by itself.
  std::string report_pattern;
  bool operator==(const Program&) const = default;
};

struct Resources {
  int cpus = 0;
  int gpus = 0;
  int64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

// Which executor a gang is placed on if several have enough free resources.
enum class PlacementPolicy {
  kPack,     // the one with the least free, so that others keep space for large gangs
  kSpread,   // the one with the most free, so that gangs seldom share a host
  kOneHost,  // as kPack, but never on several hosts
};

std::string_view Name(PlacementPolicy policy);

// Which gang gets more workers first, if several have fewer than they ask for.
enum class GrowthPolicy {
  kOldest,
  kBest,  // the gang of the trial whose first objective is best so far
  kEven,  // the smallest; no gang gets more than an even share of what the sweep can have
};

std::string_view Name(GrowthPolicy policy);

struct GangSpec {
  int workers = 1;      // world size
  int min_workers = 0;  // it may start with this many if there is no room for more; 0: with all
  // How long an attempt with fewer than `workers` runs before one with more may replace it, because
  // a restart costs time.
  Seconds grow_after{60};
  GrowthPolicy grow = GrowthPolicy::kOldest;
  Resources per_worker{.cpus = 1};
  int gpu_percent = 100;  // below 100: the share of one GPU for its one worker (per_worker.gpus: 1)
  PlacementPolicy placement = PlacementPolicy::kPack;
  Requirements required;  // labels of the executors that it runs on
  bool operator==(const GangSpec&) const = default;
};

// The GPUs of each worker; 0.25 is a quarter of one GPU.
inline double GpusPerWorker(const GangSpec& gang) {
  return gang.per_worker.gpus * gang.gpu_percent / 100.0;
}

// Sets the GPUs of each worker from gpus_per_worker of a sweep file. Returns false if the number is
// neither whole nor a share of one GPU in hundredths.
bool SetGpus(const Value& gpus, GangSpec& gang);

// When trials save checkpoints, and which of them stay. A checkpoint also stays while something
// refers to it: a trial that will continue from it, a clone, the sweep's best, or a user.
struct CheckpointPolicy {
  Step every{0};      // 0: at milestones and at the end
  int keep_last = 1;  // newest ones of each trial; at least 1 until the trial ends
  int keep_best = 1;  // of each trial, by the objective at their step
  bool operator==(const CheckpointPolicy&) const = default;
};

// The consequence if a rank failed and a line of its gang's logs matches a pattern.
enum class LogAction {
  kRetryElsewhere,  // the trial continues on other executors, and the restart does not count
  kExcludeHost,     // as kRetryElsewhere; in addition, the sweep no longer uses the executor
  kFail,            // the trial has failed, because it would fail again
};

std::string_view Name(LogAction action);

struct LogPolicy {
  std::string pattern;  // a regular expression (RE2) that matches anywhere in a line
  LogAction action = LogAction::kFail;
  bool operator==(const LogPolicy&) const = default;
};

struct FailurePolicy {
  int max_restarts = 3;           // of a trial, after its own failures
  int max_failed_trials = 10;     // one more, and the sweep fails
  Seconds backoff{10};            // before the first restart; doubles with each further one
  Seconds stall_timeout{600};     // a rank that is silent for longer has failed
  Seconds grace{5};               // from SIGTERM to SIGKILL, when a trial is ended
  std::vector<LogPolicy> on_log;  // the first that matches counts
  bool operator==(const FailurePolicy&) const = default;
};

// Ends a trial when a metric no longer changes: none of its last `patience` reports was better than
// the best before them by more than min_delta. With `std`: the standard deviation of their values
// is at most `std`.
struct Plateau {
  Objective metric;  // a metric of the sweep, or any other that the program reports
  int patience = 1;  // in reports
  double min_delta = 0;
  std::optional<double> std;  // population standard deviation, in units of the metric
  Step grace_period{1};       // first step at which a trial may stop
  bool operator==(const Plateau&) const = default;
};

// Ends a trial when a metric reaches a bound; one of them is set or both. NaN reaches none.
struct Threshold {
  std::string metric;
  std::optional<double> at_least;
  std::optional<double> at_most;
  Step grace_period{1};  // first step at which a trial may stop
  bool operator==(const Threshold&) const = default;
};

// When a sweep or a trial ends. 0 means no such limit.
struct StopPolicy {
  int max_trials = 0;         // 0: until the searcher has no more
  Seconds max_time{0};        // of the sweep, while it is not paused
  double max_gpu_hours = 0;   // of all gangs of the sweep
  int patience = 0;           // consecutive trials that end without a better report
  Seconds max_trial_time{0};  // training time of a trial
  int trial_patience = 0;     // consecutive reports of a trial that are its best in no objective
  // The targets of the objectives, in their order: the sweep ends when one report has reached all
  // of them. The list ends with the last target that is set.
  std::vector<std::optional<double>> targets;
  std::optional<Plateau> plateau;
  std::vector<Threshold> thresholds;
  bool operator==(const StopPolicy&) const = default;
};

// A complete sweep: every default is filled in. A sweep file resolves to it.
struct SweepSpec {
  std::string name;
  std::vector<std::string> tags;
  Program program;
  std::vector<Objective> objectives = std::vector<Objective>(1);  // at least one
  std::vector<Constraint> constraints;  // a report that violates one never counts as the best
  SearchSpace space;
  std::vector<Config> initial_points;  // tried first, in this order
  AlgorithmSpec searcher;
  uint64_t seed = 0;        // below 2^53
  uint64_t trial_seed = 0;  // of every trial's program, below 2^53; 0: each trial has its own
  AlgorithmSpec scheduler;
  // The metric that measures time: the step of a report is its value, rounded down, and so are all
  // steps of the sweep. Empty: the program counts the steps.
  std::string time_attr;
  Step max_step{0};  // a trial that reaches it is complete; 0: the program ends itself
  GangSpec gang;
  int max_concurrent_trials = 0;  // 0: as many as fit
  int priority = 0;               // sweeps with a higher one get resources first
  CheckpointPolicy checkpoint;
  FailurePolicy failure;
  StopPolicy stop;
  // The address of an object store for the best checkpoints, the results and the code, such as
  // s3://bucket/prefix; empty: none.
  std::string storage;
  std::vector<SweepId> warm_start;  // earlier sweeps; the searcher starts with their results

  // The first one. Schedulers judge by it unless they say otherwise.
  const Objective& objective() const { return objectives.front(); }

  // The metrics that each report must have: those of the objectives, the constraints and the
  // limits, then the metric that measures time.
  std::vector<std::string> ReportedMetrics() const;

  // Without a program, another program asks for trials and reports their results.
  bool External() const { return program.command.empty(); }

  bool operator==(const SweepSpec&) const = default;
};

// All combinations of patches that configurations can choose, without the one that has none;
// nullopt: there are more than `most`.
std::optional<std::vector<std::vector<std::string>>> PatchCombinations(const SearchSpace& space,
                                                                       size_t most);

// The patches that a configuration chooses, in the order of the parameters.
std::vector<std::string> PatchesOf(const SearchSpace& space, const Config& config);

// The digest of the snapshot for a configuration; empty: the sweep has no code, or no snapshot with
// these patches.
std::string CodeDigestOf(const SweepSpec& spec, const Config& config);

// The step for a value of the metric `time_attr`; nullopt if the value is below 1, too large to be
// exact, or NaN.
std::optional<Step> StepOfTime(double value);

}  // namespace attune

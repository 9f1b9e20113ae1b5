#pragma once

#include <cstddef>
#include <type_traits>

#include "core/log/key_row.h"
#include "core/log/program_keys.h"
#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

// The rows of the keys of the sweep file, in the order of the reference. To add a key, add a field
// to sweep_spec.h and its row here; a field without a row does not compile (sweep_keys.cc).
namespace attune {

inline constexpr size_t kMaxObjectives = 8;
inline constexpr size_t kMaxConstraints = 32;
inline constexpr size_t kMaxThresholds = 32;
inline constexpr size_t kMaxLogPolicies = 32;
inline constexpr size_t kMaxSecrets = 100;
inline constexpr size_t kMaxData = 100;
inline constexpr size_t kMaxPatternBytes = 1000;  // of a regular expression
inline constexpr int kMaxWorkers = 100'000;
inline constexpr int kMaxPriority = 1000;   // and the smallest is -kMaxPriority
inline constexpr int kMaxPlateau = 10'000;  // reports of each trial that are remembered
inline constexpr Seconds kMaxBackoff{86'400};
inline constexpr Seconds kMaxGrace{86'400};

inline const auto& Keys(std::type_identity<Objective>) {
  static const KeyTable table(
      "metric", "The metric that the sweep optimizes", {},
      KeyRow<&Objective::metric>(
          {.name = "name", .help = "A metric that the program reports", .required = true}),
      KeyRow<&Objective::mode>({.name = "mode",
                                .help = "Whether smaller or larger is better",
                                .required = true,
                                .alias = "goal",
                                .synonyms = {{"minimize", "min"},
                                             {"minimise", "min"},
                                             {"maximize", "max"},
                                             {"maximise", "max"}}}),
      HandRow<>({.name = "target",
                 .type = KeyType::kReal,
                 .help =
                     "The sweep ends when the metric is this good or better; if several metrics "
                     "have a target, one report must reach all of them",
                 .fallback_words = "none",
                 .editable = true}));
  return table;
}

inline const auto& Keys(std::type_identity<Constraint>) {
  static const KeyTable table(
      "constraints.NAME", "Bounds of a metric that the program reports; give one or both",
      {"min", "max"}, EntryNameRow<&Constraint::metric>({}),
      KeyRow<&Constraint::min>({.name = "min", .help = "Smallest value that is allowed"}),
      KeyRow<&Constraint::max>({.name = "max", .help = "Largest value that is allowed"}));
  return table;
}

inline const auto& Keys(std::type_identity<LogPolicy>) {
  static const KeyTable table(
      "failure.on_log[]", "What happens after a failure that a log explains", {},
      KeyRow<&LogPolicy::pattern>(
          {.name = "pattern",
           .help = "A regular expression (RE2); Attune searches for it in each line of the last "
                   "4 MiB that a rank printed",
           .required = true}),
      KeyRow<&LogPolicy::action>(
          {.name = "action",
           .help = "`retry_elsewhere`: the trial continues on another host, if there is one, and "
                   "the restart does not count. `exclude_host`: also, no trial of the sweep starts "
                   "on that host until its executor restarts or is resumed, or the sweep is "
                   "reopened. `fail`: the trial fails without a restart",
           .required = true}));
  return table;
}

inline const auto& Keys(std::type_identity<Plateau>) {
  static const KeyTable table(
      "stop.plateau", "Ends a trial when one of its metrics no longer changes", {},
      KeyRow<&Plateau::metric, &Objective::metric>({.name = "metric",
                                                    .help = "A metric that the program reports",
                                                    .fallback_words = "the sweep's first metric"}),
      KeyRow<&Plateau::metric, &Objective::mode>(
          {.name = "mode",
           .help = "Whether smaller or larger is better; required if the metric is not one of the "
                   "sweep's and `std` is not given",
           .fallback_words = "as in the sweep's metric"}),
      KeyRow<&Plateau::patience>({.name = "patience",
                                  .help = "Number of consecutive reports without an improvement",
                                  .required = true,
                                  .min = 1,
                                  .max = kMaxPlateau}),
      KeyRow<&Plateau::min_delta>(
          {.name = "min_delta",
           .help = "Smallest difference to the best value so far that counts as an improvement",
           .min = 0}),
      KeyRow<&Plateau::std>({.name = "std",
                             .help = "Use instead of `min_delta`. The trial ends if the standard "
                                     "deviation of its last `patience` values is at most this",
                             .fallback_words = "none",
                             .min = 0,
                             .replaces = "min_delta"}),
      KeyRow<&Plateau::grace_period>(
          {.name = "grace_period", .help = "First step at which a trial may stop", .min = 1}));
  return table;
}

inline const auto& Keys(std::type_identity<Threshold>) {
  static const KeyTable table(
      "stop.threshold.NAME",
      "Bounds of a metric that the program reports; a trial ends at the first bound that it "
      "reaches; give one or both",
      {"at_least", "at_most"}, EntryNameRow<&Threshold::metric>({}),
      KeyRow<&Threshold::at_least>(
          {.name = "at_least", .help = "The trial ends if the metric is at least this"}),
      KeyRow<&Threshold::at_most>(
          {.name = "at_most", .help = "The trial ends if the metric is at most this"}),
      KeyRow<&Threshold::grace_period>(
          {.name = "grace_period", .help = "First step at which a trial may stop", .min = 1}));
  return table;
}

inline const auto& Keys(std::type_identity<SweepSpec>) {
  static const KeyTable table(
      "", "The file", {},
      // ---- names and program
      HandRow<>({.name = "apiVersion",
                 .help = "Version of this format",
                 .fallback = std::string("attune/v1"),
                 .one_of = {"attune/v1"}}),
      HandRow<>({.name = "kind",
                 .help = "What the file describes",
                 .fallback = std::string("Sweep"),
                 .one_of = {"Sweep"}}),
      KeyRow<&SweepSpec::name>(
          {.name = "name",
           .help = "Name of the sweep, for people; several sweeps may have the same name",
           .fallback_words = "the file's name without its ending, or the folder's name if that is "
                             "`sweep`",
           .editable = true}),
      KeyRow<&SweepSpec::tags>({.name = "tags",
                                .help = "Tags for finding the sweep",
                                .fallback_words = "none",
                                .editable = true}),
      KeyRow<&SweepSpec::program, &Program::command>(
          {.name = "command",
           .help = "The program and its arguments; a relative path with a `/` starts at the sweep "
                   "file's folder, and a name without one is searched for in `PATH`",
           .fallback_words = "none: you run the trials with ask and tell",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::environment>(
          {.name = "env",
           .help = "Environment variables of every worker, in addition to the executor's; only "
                   "admins see them",
           .fallback_words = "none",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::secrets>(
          {.name = "secrets",
           .help = "Names of secrets (`attune secret set NAME`); every worker has their values as "
                   "environment variables of these names",
           .fallback_words = "none",
           .most = kMaxSecrets,
           .items = "secrets",
           .example = "[WANDB_API_KEY]",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::working_directory>(
          {.name = "working_directory",
           .help = "The folder in which the program runs; a relative path starts at the sweep "
                   "file's folder",
           .fallback_words = "the sweep file's folder; with `code`, the root of the code",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::code>(
          {.name = "code",
           .help = "Files that Attune copies to the hosts, so that they need no shared folder. "
                   "`code: .` means `{path: .}`. `working_directory`, and a relative path of the "
                   "program, start at the root of the code",
           .fallback_words = "none: the program is on every host",
           .example = "{path: .}",
           .scalar = "path",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::packages>(
          {.name = "environment",
           .help =
               "The packages with which the program runs: a file of Python packages that Attune "
               "installs on the hosts, or a container. `environment: requirements.txt` means "
               "`{python: requirements.txt}`",
           .fallback_words = "none: the packages are on every host",
           .example = "{python: requirements.txt}",
           .scalar = "python",
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::data>(
          {.name = "data",
           .help = "Files that each host downloads once, before its first trial starts",
           .fallback_words = "none",
           .most = kMaxData,
           .items = "files",
           .example = "[{name: cifar10, url: \"https://example.org/cifar10.bin\", sha256: …}]",
           .sparse = true,
           .of_program = true}),
      KeyRow<&SweepSpec::storage>(
          {.name = "storage",
           .help =
               "The address of an object store to which Attune copies the newest and the best "
               "checkpoints, the results and the code: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` "
               "or `file://…`",
           .fallback_words = "the server's `--storage-path`, if that is such an address",
           .example = "s3://bucket/prefix",
           .sparse = true,
           .of_program = true}),
      KeyRow<&SweepSpec::program, &Program::report_pattern>(
          {.name = "reports.pattern",
           .help =
               "A regular expression (RE2); Attune searches for it in each line that rank 0 "
               "prints; its named groups, `(?P<loss>…)`, are metrics and, if it has one, `step`",
           .fallback_words = "none: the program reports over the worker channel",
           .of_program = true}),
      // ---- search
      HandRow<>({.name = "metric",
                 .type = KeyType::kSection,
                 .help = "The metric that the sweep optimizes; give this or `metrics`",
                 .element = "metric"}),
      HandRow<&SweepSpec::objectives>(
          {.name = "metrics",
           .type = KeyType::kSections,
           .help = "Several metrics that the sweep optimizes together, each as in `metric`; "
                   "schedulers judge trials by the first",
           .fallback_words = "`metric` alone",
           .element = "metric",
           .most = kMaxObjectives,
           .items = "metrics",
           .example = "[{name: loss, mode: min}]"}),
      PartRow<&SweepSpec::stop, &StopPolicy::targets>({}),
      KeyRow<&SweepSpec::constraints>(
          {.name = "constraints",
           .help = "Bounds of reported metrics; a report outside them never counts as the best",
           .fallback_words = "none",
           .most = kMaxConstraints,
           .items = "metrics",
           .example = "{latency_ms: {max: 20}}"}),
      HandRow<&SweepSpec::space>(
          {.name = "parameters",
           .type = KeyType::kMap,
           .help = "The search space: names and domains; {} means a single configuration",
           .required = true}),
      HandRow<&SweepSpec::initial_points>(
          {.name = "initial_points",
           .type = KeyType::kConfigs,
           .help = "Configurations to try first; Attune draws missing values at random",
           .fallback_words = "none",
           .example = "[{lr: 0.1}]"}),
      KeyRow<&SweepSpec::searcher, &AlgorithmSpec::name>(
          {.name = "searcher.name", .help = "The algorithm", .fallback = std::string("auto")}),
      KeyRow<&SweepSpec::seed>(
          {.name = "searcher.seed",
           .help =
               "Seed of every random choice of the sweep; the same seed gives the same proposals "
               "if the same results are known in the same order"}),
      KeyRow<&SweepSpec::trial_seed>({.name = "searcher.trial_seed",
                                      .help = "Seed that the program of every trial gets",
                                      .fallback_words = "each trial has its own",
                                      .min = 1}),
      PartRow<&SweepSpec::searcher, &AlgorithmSpec::options>({.name = "searcher"}),
      KeyRow<&SweepSpec::warm_start>(
          {.name = "warm_start",
           .help = "Ids of earlier sweeps; the searcher learns from their results at the start",
           .fallback_words = "none",
           .most = kMaxWarmStarts,
           .items = "sweeps"}),
      KeyRow<&SweepSpec::scheduler, &AlgorithmSpec::name>(
          {.name = "scheduler.name",
           .help = "The algorithm; `none` is another name of `fifo`",
           .fallback = std::string("fifo"),
           .synonyms = {{"none", "fifo"}}}),
      KeyRow<&SweepSpec::time_attr>(
          {.name = "scheduler.time_attr",
           .help =
               "A reported metric that grows, such as samples or tokens; every step in this file "
               "is then its value, rounded down",
           .fallback_words = "the program counts the steps"}),
      KeyRow<&SweepSpec::max_step>(
          {.name = "scheduler.max",
           .help = "Step at which a trial is complete; 0: the program ends by itself",
           .editable = true}),
      PartRow<&SweepSpec::scheduler, &AlgorithmSpec::options>({.name = "scheduler"}),
      // ---- resources
      KeyRow<&SweepSpec::gang, &GangSpec::workers>(
          {.name = "resources.workers",
           .help = "Worker processes of a trial: the world size of its training",
           .min = 1,
           .max = kMaxWorkers,
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::min_workers>(
          {.name = "resources.min_workers",
           .help = "Minimum number of workers. A trial starts, or continues after a loss, with "
                   "fewer than `workers` if no more are free",
           .fallback_words = "workers",
           .min = 1,
           .max = kMaxWorkers,
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::grow_after>(
          {.name = "resources.grow_after",
           .help = "Minimum time with fewer than `workers` before a trial may restart from a "
                   "checkpoint with more. Needs `min_workers`",
           .needs = "min_workers",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::grow>(
          {.name = "resources.grow",
           .help = "Which trial with fewer than `workers` grows first: the oldest, the one with "
                   "the best metric, or all evenly. Needs `min_workers`",
           .needs = "min_workers",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::cpus>(
          {.name = "resources.cpus_per_worker",
           .help = "CPU cores of each worker",
           .of_program = true}),
      HandRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::gpus>(
          {.name = "resources.gpus_per_worker",
           .type = KeyType::kNumber,
           .help = "GPUs of each worker. A trial with one worker may share a GPU, in hundredths, "
                   "such as 0.25",
           .fallback = int64_t{0},
           .min = 0,
           .max = kMaxKeyInt,
           .of_program = true}),
      PartRow<&SweepSpec::gang, &GangSpec::gpu_percent>({}),
      KeyRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::memory_bytes>(
          {.name = "resources.memory_per_worker",
           .help = "Memory reserved for each worker; 0B: memory is not counted",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::placement>(
          {.name = "resources.placement",
           .help =
               "How to choose among hosts with free space. `pack`: the host with the least free "
               "space. `spread`: the host with the most. `one_host`: as `pack`, but never several "
               "hosts. `pack` and `spread` use several hosts if no single host fits the trial",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::required>(
          {.name = "resources.requires",
           .help = "Labels that executors must have. Each label has one value, or a list of "
                   "allowed values",
           .most = kMaxLabels,
           .items = "labels",
           .example = "{gpu: h100}",
           .of_program = true}),
      KeyRow<&SweepSpec::max_concurrent_trials>(
          {.name = "max_concurrent_trials",
           .help = "Maximum number of trials that run at the same time; 0: as many as fit",
           .editable = true}),
      KeyRow<&SweepSpec::priority>({.name = "priority",
                                    .help = "Sweeps with a higher priority get resources first",
                                    .min = -kMaxPriority,
                                    .max = kMaxPriority,
                                    .editable = true}),
      // ---- checkpoints
      KeyRow<&SweepSpec::checkpoint, &CheckpointPolicy::every>(
          {.name = "checkpoint.every",
           .help = "Steps between checkpoints. If 0, a checkpoint is saved at decisions of the "
                   "scheduler, at the end, and a minute after the last one; or at each report if "
                   "`scheduler.max` is 0",
           .of_program = true}),
      KeyRow<&SweepSpec::checkpoint, &CheckpointPolicy::keep_last>(
          {.name = "checkpoint.keep_last",
           .help = "Number of newest checkpoints to keep for each trial. If 0, one is kept until "
                   "the trial ends",
           .of_program = true}),
      KeyRow<&SweepSpec::checkpoint, &CheckpointPolicy::keep_best>(
          {.name = "checkpoint.keep_best",
           .help =
               "Number of best checkpoints to keep for each trial, by the metrics at their step",
           .of_program = true}),
      // ---- failures
      KeyRow<&SweepSpec::failure, &FailurePolicy::max_restarts>(
          {.name = "failure.max_restarts",
           .help = "How often a trial that failed restarts from its last checkpoint",
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::max_failed_trials>(
          {.name = "failure.max_failed_trials",
           .help = "Maximum number of failed trials. With one more, the sweep fails. Before the "
                   "first report it can also fail after 3 failed attempts",
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::backoff>(
          {.name = "failure.backoff",
           .help = "Wait before the first restart of a trial, shortened by a random part of at "
                   "most half. It doubles with each restart, up to 32 times",
           .max = kMaxBackoff.value,
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::stall_timeout>(
          {.name = "failure.stall_timeout",
           .help = "A trial fails if a worker sends no sign of life for this long",
           .min = 1,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::grace>(
          {.name = "failure.grace",
           .help = "Time between SIGTERM and SIGKILL when Attune ends a trial's processes; 0s: "
                   "SIGKILL at once",
           .max = kMaxGrace.value,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::on_log>(
          {.name = "failure.on_log",
           .help = "What to do after a rank fails, if a line of its gang's logs on that host "
                   "matches a pattern. The first matching pattern counts",
           .fallback_words = "none",
           .most = kMaxLogPolicies,
           .items = "patterns",
           .example = "[{pattern: \"CUDA error\", action: exclude_host}]",
           .editable = true,
           .of_program = true}),
      // ---- limits
      KeyRow<&SweepSpec::stop, &StopPolicy::max_trials>(
          {.name = "stop.max_trials",
           .help = "Maximum number of trials. If 0, the sweep runs until its searcher is "
                   "exhausted, which happens only in a finite space",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_time>(
          {.name = "stop.max_time",
           .help = "Maximum duration of the sweep, without the time while it is paused",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_gpu_hours>(
          {.name = "stop.max_gpu_hours",
           .help = "Maximum GPU-hours of all trials together",
           .min = 0,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::patience>(
          {.name = "stop.patience",
           .help = "The sweep ends after this number of consecutive trials without a better report",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_trial_time>(
          {.name = "stop.max_trial_time",
           .help = "Maximum training time of a trial, over all its attempts",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::trial_patience>(
          {.name = "stop.trial_patience",
           .help = "A trial ends after this number of consecutive reports without an improvement "
                   "in any metric",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::plateau>(
          {.name = "stop.plateau",
           .help = "Ends a trial when one of its metrics no longer changes",
           .fallback_words = "none",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::thresholds>(
          {.name = "stop.threshold",
           .help = "Ends a trial when one of its metrics reaches a bound",
           .fallback_words = "none",
           .most = kMaxThresholds,
           .items = "metrics",
           .example = "{accuracy: {at_least: 0.9}}",
           .editable = true}));
  return table;
}

// The sections of the file whose keys the rows name with a point: stop.max_trials.
struct FileSection {
  const char* name;
  const char* help;
  const char* needed = nullptr;  // without this key the section says nothing
};
inline constexpr FileSection kFileSections[] = {
    {"reports",
     "How Attune reads reports from the output of a program that does not report by itself",
     "pattern"},
    {"searcher", "The algorithm that proposes configurations"},
    {"scheduler", "The algorithm that judges running trials and stops the bad ones"},
    {"resources", "Resources of one trial"},
    {"checkpoint", "When trials save checkpoints, and which ones are kept"},
    {"failure", "What happens after a failure"},
    {"stop", "When the sweep or a trial ends; the first limit that is reached counts; 0: no limit"},
};

}  // namespace attune

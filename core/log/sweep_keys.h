#pragma once

#include <cstddef>
#include <type_traits>

#include "core/log/key_row.h"
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
      "failure.on_log[]", "What follows a failure that the log explains", {},
      KeyRow<&LogPolicy::pattern>(
          {.name = "pattern",
           .help = "A regular expression (RE2); Attune searches for it in each line of the last "
                   "4 MiB that a rank printed",
           .required = true}),
      KeyRow<&LogPolicy::action>(
          {.name = "action",
           .help = "`retry_elsewhere`: the trial continues on another host, if there is one, and "
                   "the restart does not count; `exclude_host`: in addition, nothing of the sweep "
                   "starts on that host again; `fail`: the trial fails and does not restart",
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
      KeyRow<&Plateau::std>(
          {.name = "std",
           .help = "Instead of `min_delta`: the trial ends when the standard deviation of its last "
                   "`patience` values is at most this, whether they improve or not",
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
      KeyRow<&Threshold::at_least>({.name = "at_least", .help = "The trial ends at this or more"}),
      KeyRow<&Threshold::at_most>({.name = "at_most", .help = "The trial ends at this or less"}),
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
                                .help = "Words that help people find the sweep",
                                .fallback_words = "none",
                                .editable = true}),
      KeyRow<&SweepSpec::program, &Program::command>(
          {.name = "command",
           .help = "The program and its arguments; a relative path with a `/` starts at the sweep "
                   "file's folder, and a name without one is searched for in `PATH`",
           .fallback_words = "none: another program asks for trials and reports their results",
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
           .fallback_words = "the sweep file's folder",
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
           .help = "Smallest number of workers with which a trial starts, or continues after a "
                   "loss, if there is no room for more",
           .fallback_words = "workers",
           .min = 1,
           .max = kMaxWorkers,
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::grow_after>(
          {.name = "resources.grow_after",
           .help = "How long a trial runs with fewer than `workers` before it may stop at a "
                   "checkpoint to continue with more; needs `min_workers`",
           .needs = "min_workers",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::grow>(
          {.name = "resources.grow",
           .help = "Which of the trials with fewer than `workers` grows first when there is room: "
                   "the oldest, the one with the best metric so far, or all of them evenly; needs "
                   "`min_workers`",
           .needs = "min_workers",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::cpus>(
          {.name = "resources.cpus_per_worker",
           .help = "CPU cores of each worker",
           .of_program = true}),
      HandRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::gpus>(
          {.name = "resources.gpus_per_worker",
           .type = KeyType::kNumber,
           .help =
               "GPUs of each worker; a trial with one worker may also have a share of one GPU in "
               "hundredths, such as 0.25, and other trials use the rest",
           .fallback = int64_t{0},
           .min = 0,
           .max = kMaxKeyInt,
           .of_program = true}),
      PartRow<&SweepSpec::gang, &GangSpec::gpu_percent>({}),
      KeyRow<&SweepSpec::gang, &GangSpec::per_worker, &Resources::memory_bytes>(
          {.name = "resources.memory_per_worker",
           .help = "Memory that Attune reserves for each worker; 0B: it does not count memory",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::placement>(
          {.name = "resources.placement",
           .help = "Which host a trial gets if several have room: `pack`: the one with the least "
                   "free; `spread`: the one with the most free; `one_host`: as `pack`, and never "
                   "several hosts, which the others use if no host has room for the whole trial",
           .of_program = true}),
      KeyRow<&SweepSpec::gang, &GangSpec::required>(
          {.name = "resources.requires",
           .help =
               "Labels that the executors of a trial must have, each with one value or a list of "
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
           .help = "Steps between checkpoints; 0: where the scheduler decides, at the end, and a "
                   "minute after the last one; at each report if no end is known",
           .of_program = true}),
      KeyRow<&SweepSpec::checkpoint, &CheckpointPolicy::keep_last>(
          {.name = "checkpoint.keep_last",
           .help = "How many of the newest checkpoints of each trial stay; 0: one until the trial "
                   "ends, then none",
           .of_program = true}),
      KeyRow<&SweepSpec::checkpoint, &CheckpointPolicy::keep_best>(
          {.name = "checkpoint.keep_best",
           .help =
               "How many of the best checkpoints of each trial stay, by the metrics at their step",
           .of_program = true}),
      // ---- failures
      KeyRow<&SweepSpec::failure, &FailurePolicy::max_restarts>(
          {.name = "failure.max_restarts",
           .help = "How often a trial that failed restarts from its last checkpoint",
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::max_failed_trials>(
          {.name = "failure.max_failed_trials",
           .help = "How many trials may fail; one more, and the sweep fails; before any report, it "
                   "also fails after 3 failures or if the program cannot start",
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::backoff>(
          {.name = "failure.backoff",
           .help = "Longest wait before the first restart of a trial; the wait is at least half of "
                   "it, and doubles with each further restart, up to 32 times",
           .max = kMaxBackoff.value,
           .editable = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::stall_timeout>(
          {.name = "failure.stall_timeout",
           .help = "A worker that shows no sign of life for this long has failed",
           .min = 1,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::grace>(
          {.name = "failure.grace",
           .help = "How long the processes of a trial that is ended have to leave after SIGTERM; "
                   "then they get SIGKILL; 0s: SIGKILL at once",
           .max = kMaxGrace.value,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::failure, &FailurePolicy::on_log>(
          {.name = "failure.on_log",
           .help =
               "What follows if a rank failed and a line of its gang's logs on that host matches "
               "a pattern; the first pattern that matches counts",
           .fallback_words = "none",
           .most = kMaxLogPolicies,
           .items = "patterns",
           .example = "[{pattern: \"CUDA error\", action: exclude_host}]",
           .editable = true,
           .of_program = true}),
      // ---- limits
      KeyRow<&SweepSpec::stop, &StopPolicy::max_trials>(
          {.name = "stop.max_trials",
           .help = "Maximum number of trials; 0: until the searcher has no more, as `grid` and, if "
                   "every parameter has steps or a list, `tpe`",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_time>(
          {.name = "stop.max_time",
           .help = "How long the sweep runs; time while it is paused does not count",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_gpu_hours>(
          {.name = "stop.max_gpu_hours",
           .help = "GPU-hours of all trials together",
           .min = 0,
           .editable = true,
           .of_program = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::patience>(
          {.name = "stop.patience",
           .help = "Number of consecutive trials that end without a better report",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::max_trial_time>(
          {.name = "stop.max_trial_time",
           .help = "Training time of each trial, over all its attempts",
           .editable = true}),
      KeyRow<&SweepSpec::stop, &StopPolicy::trial_patience>(
          {.name = "stop.trial_patience",
           .help = "Number of consecutive reports of a trial that are its best in no metric",
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
    {"resources", "What one trial uses"},
    {"checkpoint", "When trials save checkpoints, and which of them stay"},
    {"failure", "What follows a failure"},
    {"stop", "When the sweep or a trial ends; the first limit that is reached counts; 0: no limit"},
};

}  // namespace attune

#include "sweepfile/keys.h"

// What happens while a sweep runs: what is kept, what follows a failure, and when it stops.
namespace attune::sweepfile {
namespace {

constexpr double kDay = 86'400;
constexpr double kMaxPlateau = 10'000;  // reports of each trial that are remembered

const Value kNone = int64_t{0};
const Value kNoTime = 0.0;

Key GracePeriodKey() {
  return {.name = "grace_period",
          .type = KeyType::kInteger,
          .help = "First step at which a trial may stop",
          .fallback = Value(int64_t{1}),
          .min = 1,
          .max = kMaxStep};
}

}  // namespace

const Section& CheckpointKeys() {
  static const Section section{
      .name = "checkpoint",
      .help = "When trials are saved, and which checkpoints stay",
      .keys = {
          {.name = "every",
           .type = KeyType::kInteger,
           .help =
               "Steps between checkpoints; 0: where the scheduler decides and at the end, and a "
               "minute after the last one; at each report where no end is known",
           .fallback = Integer(0),
           .min = 0,
           .max = kMaxStep},
          {.name = "keep_last",
           .type = KeyType::kInteger,
           .help = "How many of each trial's newest checkpoints stay; 0: one while it goes on, and "
                   "none "
                   "of one that has ended",
           .fallback = Integer(CheckpointPolicy{}.keep_last),
           .min = 0,
           .max = kMaxInt},
          {.name = "keep_best",
           .type = KeyType::kInteger,
           .help = "How many of each trial's best checkpoints, by the metrics at their step, stay",
           .fallback = Integer(CheckpointPolicy{}.keep_best),
           .min = 0,
           .max = kMaxInt},
      }};
  return section;
}

const Section& FailureKeys() {
  static const Section section{
      .name = "failure",
      .help = "What follows a failure",
      .keys = {
          {.name = "max_restarts",
           .type = KeyType::kInteger,
           .help = "How often a trial is started again from its last checkpoint after a failure of "
                   "its own",
           .fallback = Integer(FailurePolicy{}.max_restarts),
           .min = 0,
           .max = kMaxInt},
          {.name = "max_failed_trials",
           .type = KeyType::kInteger,
           .help = "How many trials may fail; one more, and the sweep fails. So it does before "
                   "anything was reported where 3 have failed, or the program is broken",
           .fallback = Integer(FailurePolicy{}.max_failed_trials),
           .min = 0,
           .max = kMaxInt},
          {.name = "backoff",
           .type = KeyType::kDuration,
           .help =
               "Longest wait before a trial's first restart, at least half of it; doubled for each "
               "further one, up to 32 times",
           .fallback = Duration(FailurePolicy{}.backoff),
           .min = 0,
           .max = kDay},
          {.name = "stall_timeout",
           .type = KeyType::kDuration,
           .help = "A worker that gives no sign of life for so long has failed",
           .fallback = Duration(FailurePolicy{}.stall_timeout),
           .min = 1,
           .max = kMaxDuration.value},
          {.name = "on_log",
           .type = KeyType::kSections,
           .help =
               "What follows where a rank has failed and a line of its gang's logs on that host "
               "has a pattern; the first pattern that is found counts",
           .fallback_words = "none"},
      }};
  return section;
}

const Section& LogPolicyKeys() {
  static const Section section{
      .name = "failure.on_log[]",
      .help = "What follows a failure that the log explains",
      .keys = {
          {.name = "pattern",
           .help = "A regular expression (RE2), looked for in each line of the last 4 MiB that a "
                   "rank has printed",
           .required = true},
          {.name = "action",
           .help =
               "`retry_elsewhere`: the trial goes on on another host, where there is one, at no "
               "cost; `exclude_host`: and nothing of the sweep starts on that host any more; "
               "`fail`: the trial has failed, and is not started again",
           .required = true,
           .one_of = {"retry_elsewhere", "exclude_host", "fail"}},
      }};
  return section;
}

const Section& StopKeys() {
  static const Section section{
      .name = "stop",
      .help = "When the sweep or a trial is over, by whichever limit comes first; 0: no such limit",
      .keys = {
          {.name = "max_trials",
           .type = KeyType::kInteger,
           .help = "Trials that are started in all; without it until the searcher has no more, "
                   "which `grid` comes to, and `tpe` where all parameters are steps or lists",
           .fallback = kNone,
           .min = 0,
           .max = kMaxInt},
          {.name = "max_time",
           .type = KeyType::kDuration,
           .help = "Time the sweep runs, not counting while it is paused",
           .fallback = kNoTime,
           .min = 0,
           .max = kMaxDuration.value},
          {.name = "max_gpu_hours",
           .type = KeyType::kReal,
           .help = "GPU-hours that all its trials use together",
           .fallback = Value(0.0),
           .min = 0},
          {.name = "patience",
           .type = KeyType::kInteger,
           .help = "Trials that end one after another while the sweep gets no better report",
           .fallback = kNone,
           .min = 0,
           .max = kMaxInt},
          {.name = "max_trial_time",
           .type = KeyType::kDuration,
           .help = "Training time of each trial, over all its attempts",
           .fallback = kNoTime,
           .min = 0,
           .max = kMaxDuration.value},
          {.name = "trial_patience",
           .type = KeyType::kInteger,
           .help = "Reports of a trial one after another that are its best in no metric",
           .fallback = kNone,
           .min = 0,
           .max = kMaxInt},
          {.name = "plateau",
           .type = KeyType::kMap,
           .help = "A trial is over when a metric has come to rest",
           .fallback_words = "none"},
          {.name = "threshold",
           .type = KeyType::kMap,
           .help = "A trial is over when one of these metrics has come to a bound",
           .fallback_words = "none"},
      }};
  return section;
}

const Section& PlateauKeys() {
  static const Section section{
      .name = "stop.plateau",
      .help = "When a metric of a trial has come to rest",
      .keys = {
          {.name = "metric",
           .help = "A metric that the program reports",
           .fallback_words = "the sweep's first"},
          {.name = "mode",
           .help = "Whether smaller or larger is better; needed for a metric that is none of the "
                   "sweep's, unless there is `std`",
           .fallback_words = "the sweep's",
           .one_of = {"min", "max"}},
          {.name = "patience",
           .type = KeyType::kInteger,
           .help = "Reports one after another that bring nothing better",
           .required = true,
           .min = 1,
           .max = kMaxPlateau},
          {.name = "min_delta",
           .type = KeyType::kReal,
           .help = "By how much, at least, a value must be better than the best before to count",
           .fallback_words = "`0`",
           .min = 0},
          {.name = "std",
           .type = KeyType::kReal,
           .help = "Instead of `min_delta`: at most this standard deviation of the last `patience` "
                   "values, whether they improve or not",
           .fallback_words = "none",
           .min = 0},
          GracePeriodKey(),
      }};
  return section;
}

const Section& ThresholdKeys() {
  static const Section section{
      .name = "stop.threshold.NAME",
      .help =
          "Bounds of a metric that the program reports, of which the first one that is reached "
          "ends the trial; one of them or both",
      .keys = {
          {.name = "at_least", .type = KeyType::kReal, .help = "This or larger"},
          {.name = "at_most", .type = KeyType::kReal, .help = "This or smaller"},
          GracePeriodKey(),
      }};
  return section;
}

}  // namespace attune::sweepfile

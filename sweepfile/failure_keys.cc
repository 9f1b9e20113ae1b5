#include "sweepfile/keys.h"

// What keeps and restores trials: checkpoints, and what follows a failure.
namespace attune::sweepfile {
namespace {

constexpr double kMaxInt = 2147483647;
constexpr double kMaxStep = 9007199254740991;
constexpr double kDay = 86'400;

Value Integer(int64_t value) { return value; }
Value Duration(Seconds duration) { return duration.value; }

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

}  // namespace attune::sweepfile

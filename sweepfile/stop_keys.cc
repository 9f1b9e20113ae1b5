#include "sweepfile/keys.h"

namespace attune::sweepfile {
namespace {

constexpr double kMaxInt = 2147483647;
constexpr double kMaxStep = 9007199254740991;
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

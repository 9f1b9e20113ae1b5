#include "sweepfile/keys.h"

#include <algorithm>

#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

constexpr int kMaxWorkers = 100'000;

Value Text(std::string text) { return text; }

Key OptionKey(const Option& option) {
  constexpr KeyType kTypes[] = {KeyType::kBoolean, KeyType::kInteger, KeyType::kReal,
                                KeyType::kText};
  Key key{.name = option.name,
          .type = kTypes[option.fallback.index()],
          .help = option.help,
          .required = option.required,
          .min = option.min,
          .max = option.max,
          .one_of = option.one_of};
  if (!option.required) key.fallback = option.fallback;
  return key;
}

template <class Algorithm>
std::vector<std::string> EntryNames(const std::vector<Entry<Algorithm>>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

template <class Algorithm>
void AddOptions(const Entry<Algorithm>* entry, Section& section) {
  if (entry == nullptr) return;
  section.help = entry->help;
  for (const Option& option : entry->options) {
    if (section.Find(option.name) == nullptr) section.keys.push_back(OptionKey(option));
  }
}

}  // namespace

const Key* Section::Find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [key](const Key& known) {
    return known.name == key || (!known.alias.empty() && known.alias == key);
  });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> Section::Names() const {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(key.name);
  return names;
}

const Section& FileKeys() {
  static const Section section{
      .name = "",
      .help = "The file",
      .keys = {
          {.name = "apiVersion",
           .help = "Version of this format",
           .fallback = Text("attune/v1"),
           .one_of = {"attune/v1"}},
          {.name = "kind",
           .help = "What the file describes",
           .fallback = Text("Sweep"),
           .one_of = {"Sweep"}},
          {.name = "name",
           .help = "Name of the sweep, for people; need not be unique",
           .fallback_words = "the file's name without its ending, or the folder's where that is "
                             "`sweep`"},
          {.name = "tags",
           .type = KeyType::kTexts,
           .help = "Words to find the sweep by",
           .fallback_words = "none"},
          {.name = "command",
           .type = KeyType::kTexts,
           .help = "The program and its arguments; a relative path with a `/` is looked for in the "
                   "sweep file's folder, a bare name in `PATH`",
           .fallback_words = "none: trials are asked for and told from outside"},
          {.name = "env",
           .type = KeyType::kTextMap,
           .help = "Environment variables of every worker, beside the executor's own",
           .fallback_words = "none"},
          {.name = "working_directory",
           .help =
               "Where the program runs; a relative path is looked for in the sweep file's folder",
           .fallback_words = "the sweep file's folder"},
          {.name = "reports",
           .type = KeyType::kSection,
           .help = "How reports are read from the output of a program that makes none itself"},
          {.name = "metric",
           .type = KeyType::kSection,
           .help = "What the sweep improves; this or `metrics` is needed"},
          {.name = "metrics",
           .type = KeyType::kSections,
           .help = "Several metrics that the sweep improves together, each written as `metric` is; "
                   "schedulers judge by the first",
           .fallback_words = "`metric` alone"},
          {.name = "constraints",
           .type = KeyType::kMap,
           .help = "Bounds of reported metrics: a report outside them is nobody's best",
           .fallback_words = "none"},
          {.name = "parameters",
           .type = KeyType::kMap,
           .help = "The search space: names and domains; {} is a single configuration",
           .required = true},
          {.name = "initial_points",
           .type = KeyType::kConfigs,
           .help = "Configurations to try first; what one leaves out is drawn at random",
           .fallback_words = "none"},
          {.name = "searcher", .type = KeyType::kSection, .help = "What proposes configurations"},
          {.name = "warm_start",
           .type = KeyType::kTexts,
           .help = "Earlier sweeps, by id, whose results the searcher begins with; 16 at most",
           .fallback_words = "none"},
          {.name = "scheduler",
           .type = KeyType::kSection,
           .help = "What judges running trials and stops the bad ones"},
          {.name = "resources", .type = KeyType::kSection, .help = "What one trial occupies"},
          {.name = "max_concurrent_trials",
           .type = KeyType::kInteger,
           .help = "Trials that may run at the same time; 0: as many as fit",
           .fallback = Integer(0),
           .min = 0,
           .max = kMaxInt},
          {.name = "priority",
           .type = KeyType::kInteger,
           .help = "A sweep of a higher priority is served first",
           .fallback = Integer(0),
           .min = -kMaxPriority,
           .max = kMaxPriority},
          {.name = "checkpoint",
           .type = KeyType::kSection,
           .help = "When trials are saved, and which checkpoints stay"},
          {.name = "failure", .type = KeyType::kSection, .help = "What follows a failure"},
          {.name = "stop",
           .type = KeyType::kSection,
           .help = "When the sweep or a trial is over, by whichever limit comes first"},
      }};
  return section;
}

const Section& ReportsKeys() {
  static const Section section{
      .name = "reports",
      .help = "How reports are read from the output of a program that makes none itself",
      .keys = {
          {.name = "pattern",
           .help = "A regular expression (RE2), looked for in each line that rank 0 prints; its "
                   "named groups, `(?P<loss>…)`, are metrics and, if there is one, `step`",
           .fallback_words = "none: the program reports over the worker channel"},
      }};
  return section;
}

const Section& MetricKeys() {
  static const Section section{
      .name = "metric",
      .help = "What the sweep improves",
      .keys = {
          {.name = "name", .help = "A metric that the program reports", .required = true},
          {.name = "mode",
           .help = "Whether smaller or larger is better",
           .required = true,
           .one_of = {"min", "max"},
           .alias = "goal",
           .synonyms = {{"minimize", "min"},
                        {"minimise", "min"},
                        {"maximize", "max"},
                        {"maximise", "max"}}},
          {.name = "target",
           .type = KeyType::kReal,
           .help = "The sweep is over when the metric is this good or better; where several have "
                   "a target, when one report has reached them all",
           .fallback_words = "none"},
      }};
  return section;
}

const Section& ConstraintKeys() {
  static const Section section{
      .name = "constraints.NAME",
      .help = "Bounds of a metric that the program reports; one of them or both",
      .keys = {
          {.name = "min", .type = KeyType::kReal, .help = "At least this"},
          {.name = "max", .type = KeyType::kReal, .help = "At most this"},
      }};
  return section;
}

const Section& ParameterKeys() {
  static const Section section{
      .name = "parameters.NAME",
      .help =
          "One parameter: a range (`min` and `max`), a choice (`values`) or a constant (`value`)",
      .keys = {
          {.name = "min", .type = KeyType::kNumber, .help = "Smallest value, included"},
          {.name = "max", .type = KeyType::kNumber, .help = "Largest value, included"},
          {.name = "scale",
           .help = "How a range is searched: evenly in the value or in its logarithm",
           .fallback = Text("linear"),
           .one_of = {"linear", "log"}},
          {.name = "step",
           .type = KeyType::kNumber,
           .help = "Only min, min + step, … up to max are values",
           .fallback_words = "1 for integers; none for floats"},
          {.name = "type",
           .help = "Whether numbers are integers or floats",
           .fallback_words = "`int` where all of min, max and step are written as integers, else "
                             "`float`",
           .one_of = {"float", "int"}},
          {.name = "values", .type = KeyType::kValues, .help = "The values to choose from"},
          {.name = "value", .type = KeyType::kValue, .help = "The one value"},
          {.name = "when",
           .type = KeyType::kMap,
           .help = "Other parameters and what each of them must be for this one to exist: a value, "
                   "a list of values, or bounds",
           .fallback_words = "it always exists"},
      }};
  return section;
}

const Section& BoundsKeys() {
  static const Section section{.name = "parameters.NAME.when.NAME",
                               .help = "Bounds of another parameter; one of them or both",
                               .keys = {
                                   {.name = "gte", .type = KeyType::kReal, .help = "At least this"},
                                   {.name = "lte", .type = KeyType::kReal, .help = "At most this"},
                               }};
  return section;
}

Section SearcherKeys(const Algorithms& algorithms) {
  return {.name = "searcher",
          .help = "What proposes configurations; further keys depend on `name`",
          .keys = {{.name = "name",
                    .help = "The algorithm",
                    .fallback = Text("auto"),
                    .one_of = EntryNames(algorithms.searchers())},
                   {.name = "seed",
                    .type = KeyType::kInteger,
                    .help = "Seed of all that is random in the sweep; the same seed gives the same "
                            "proposals",
                    .fallback = Integer(0),
                    .min = 0,
                    .max = kMaxSeed}}};
}

Section SchedulerKeys(const Algorithms& algorithms) {
  return {.name = "scheduler",
          .help = "What judges running trials; further keys depend on `name`",
          .keys = {{.name = "name",
                    .help = "The algorithm; `none` is another name of `fifo`",
                    .fallback = Text("fifo"),
                    .one_of = EntryNames(algorithms.schedulers()),
                    .synonyms = {{"none", "fifo"}}},
                   {.name = "time_attr",
                    .help = "A reported metric that grows, such as samples or tokens, to measure "
                            "time in: every step in this file is its value, rounded down",
                    .fallback_words = "steps are counted by the program"},
                   {.name = "max",
                    .type = KeyType::kInteger,
                    .help = "Step at which a trial is complete; 0: the program ends itself",
                    .fallback = Integer(0),
                    .min = 0,
                    .max = kMaxStep}}};
}

Section SearcherKeys(const Algorithms& algorithms, std::string_view name) {
  Section section = SearcherKeys(algorithms);
  AddOptions(algorithms.FindSearcher(name), section);
  return section;
}

Section SchedulerKeys(const Algorithms& algorithms, std::string_view name) {
  Section section = SchedulerKeys(algorithms);
  AddOptions(algorithms.FindScheduler(name), section);
  return section;
}

const Section& ResourcesKeys() {
  static const Section section{
      .name = "resources",
      .help = "What one trial occupies",
      .keys = {
          {.name = "workers",
           .type = KeyType::kInteger,
           .help = "Worker processes of a trial: the world size of its training",
           .fallback = Integer(1),
           .min = 1,
           .max = kMaxWorkers},
          {.name = "min_workers",
           .type = KeyType::kInteger,
           .help =
               "With so few a trial starts, or goes on after a loss, where there is no room for "
               "more",
           .fallback_words = "workers",
           .min = 1,
           .max = kMaxWorkers},
          {.name = "grow_after",
           .type = KeyType::kDuration,
           .help = "How long a trial runs with fewer than workers before it leaves at a checkpoint "
                   "to go on with more; needs min_workers",
           .fallback = Duration(GangSpec{}.grow_after),
           .min = 0,
           .max = kMaxDuration.value},
          {.name = "cpus_per_worker",
           .type = KeyType::kInteger,
           .help = "CPU cores of each worker",
           .fallback = Integer(1),
           .min = 0,
           .max = kMaxInt},
          {.name = "grow",
           .help =
               "Of the trials that have fewer than `workers`, which one goes on with more where "
               "there is room: the oldest, the one whose metric is best so far, or all of them "
               "evenly",
           .fallback = Text("oldest"),
           .one_of = {"oldest", "best", "even"}},
          {.name = "gpus_per_worker",
           .type = KeyType::kNumber,
           .help = "GPUs of each worker; of trials with one worker also a share of one, such as "
                   "0.25, in hundredths: other trials have the rest",
           .fallback = Integer(0),
           .min = 0,
           .max = kMaxInt},
          {.name = "memory_per_worker",
           .type = KeyType::kSize,
           .help = "Memory set aside for each worker; 0B: not counted",
           .fallback = Integer(0)},
          {.name = "placement",
           .help = "Where a trial goes when several hosts have room: where it fills best, or where "
                   "most is free; over several only where none has room for all of it, and with "
                   "one_host never",
           .fallback = Text("pack"),
           .one_of = {"pack", "spread", "one_host"}},
          {.name = "requires",
           .type = KeyType::kChoices,
           .help =
               "Labels of the executors that a trial runs on, each with the value or the values "
               "that will do"},
      }};
  return section;
}

std::vector<Section> AllSections(const Algorithms& algorithms) {
  return {FileKeys(),
          ReportsKeys(),
          MetricKeys(),
          ConstraintKeys(),
          ParameterKeys(),
          BoundsKeys(),
          SearcherKeys(algorithms),
          SchedulerKeys(algorithms),
          ResourcesKeys(),
          CheckpointKeys(),
          FailureKeys(),
          LogPolicyKeys(),
          StopKeys(),
          PlateauKeys(),
          ThresholdKeys()};
}

std::string_view Name(KeyType type) {
  switch (type) {
    case KeyType::kText:
      return "text";
    case KeyType::kInteger:
      return "integer";
    case KeyType::kReal:
    case KeyType::kNumber:
      return "number";
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kDuration:
      return "duration";
    case KeyType::kSize:
      return "size";
    case KeyType::kValue:
      return "value";
    case KeyType::kTexts:
      return "list of texts";
    case KeyType::kValues:
      return "list of values";
    case KeyType::kTextMap:
      return "map of texts";
    case KeyType::kChoices:
      return "map of texts or lists of texts";
    case KeyType::kSection:
    case KeyType::kMap:
      return "map";
    case KeyType::kSections:
    case KeyType::kConfigs:
      return "list of maps";
  }
  return "";
}

std::string FallbackText(const Key& key) {
  if (!key.fallback) return "";
  if (key.type == KeyType::kDuration) {
    return FormatDuration(Seconds{std::get<double>(*key.fallback)});
  }
  if (key.type == KeyType::kSize) return FormatSize(std::get<int64_t>(*key.fallback));
  return FormatValue(*key.fallback);
}

}  // namespace attune::sweepfile

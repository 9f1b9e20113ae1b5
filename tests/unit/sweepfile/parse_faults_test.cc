#include "base/result.h"
#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

TEST(ParseFaults, LocatesFaultsOfMetricsAndConstraints) {
  const std::string rest = "parameters: {lr: {min: 0.1, max: 1.0}}\nstop: {patience: 5}\n";
  const std::pair<const char*, const char*> cases[] = {
      {"", "sweep.yaml:1:1: metric: missing: the metric that the sweep optimizes\n"},
      {"metric: {name: a, mode: min}\nmetrics: [{name: b, mode: min}]\n",
       "sweep.yaml:2:1: metrics: metric is there as well; put it first in metrics, and remove "
       "it\n"},
      {"metrics: []\n",
       "sweep.yaml:1:1: metrics: is empty; write a list such as [{name: loss, mode: min}]\n"},
      {"metrics: {}\n",
       "sweep.yaml:1:1: metrics: expected a list such as [{name: loss, mode: min}], found a map\n"},
      {"metrics: [{name: a, mode: min}, {name: a, mode: max}]\n",
       "sweep.yaml:1:40: metrics[1].name: a is there twice; name each metric once\n"},
      {"metrics: [{name: a, mode: min}, {name: b, mod: max}]\n",
       "sweep.yaml:1:33: metrics[1].mode: missing: whether smaller or larger is better: min, max\n"
       "sweep.yaml:1:43: metrics[1].mod: unknown key; did you mean mode?\n"},
      {"metric: {name: a, mode: min}\nconstraints: {a: {}}\n",
       "sweep.yaml:2:15: constraints.a: says nothing; give min, max or both\n"},
      {"metric: {name: a, mode: min}\nconstraints: {a: {min: 3, max: 2}}\n",
       "sweep.yaml:2:32: constraints.a.max: 2.0 is below min 3.0\n"},
      {"metric: {name: a, mode: min}\nconstraints: {a: 20}\n",
       "sweep.yaml:2:18: constraints.a: expected a map, found the integer 20\n"},
  };
  for (const auto& [head, faults] : cases) EXPECT_EQ(FaultsOf(head + rest), faults) << head;
}

TEST(ParseFaults, LimitsMetricsAndConstraints) {
  const auto text = [](size_t metrics, size_t constraints) {
    std::string file = "parameters: {lr: {min: 0.1, max: 1.0}}\nstop: {patience: 5}\nmetrics:\n";
    for (size_t i = 0; i < metrics; ++i)
      file += "  - {name: m" + std::to_string(i) + ", mode: min}\n";
    file += "constraints:\n";
    for (size_t i = 0; i < constraints; ++i) file += "  c" + std::to_string(i) + ": {min: 1}\n";
    return file;
  };
  EXPECT_EQ(Spec(text(kMaxObjectives, kMaxConstraints)).objectives.size(), kMaxObjectives);
  EXPECT_THAT(FaultsOf(text(kMaxObjectives + 1, 1)), HasSubstr("has more than 8 metrics"));
  EXPECT_THAT(FaultsOf(text(1, kMaxConstraints + 1)), HasSubstr("has more than 32 metrics"));
}

TEST(ParseFaults, RefusesProgramKeysWithoutACommand) {
  const std::string rest = "metric: {name: loss, mode: min}\nparameters: {lr: {value: 1}}\n";
  const std::pair<const char*, const char*> cases[] = {
      {"env: {A: b}", "sweep.yaml:3:1: env: "},
      {"working_directory: /tmp", "sweep.yaml:3:1: working_directory: "},
      {"reports: {pattern: x}", "sweep.yaml:3:1: reports: "},
      {"resources: {workers: 2}", "sweep.yaml:3:1: resources: "},
      {"checkpoint: {every: 2}", "sweep.yaml:3:1: checkpoint: "},
      {"failure: {stall_timeout: 1m}", "sweep.yaml:3:11: failure.stall_timeout: "},
      {"failure: {on_log: []}", "sweep.yaml:3:11: failure.on_log: "},
      {"stop: {max_gpu_hours: 2}", "sweep.yaml:3:8: stop.max_gpu_hours: "},
  };
  for (const auto& [line, place] : cases) {
    EXPECT_EQ(FaultsOf(rest + line + "\n"),
              std::string(place) +
                  "is about the program that runs, and the file has no command; name the program "
                  "in command, or remove this\n");
  }
}

TEST(ParseFaults, SuggestsAKeyForAnUnknownKey) {
  const Parsed parsed = Parse(With("scheduler:\n  name: asha\n  max: 9\n  reduction_facter: 3\n"));
  ASSERT_EQ(parsed.faults.size(), 1u);
  EXPECT_EQ(FormatFault("sweep.yaml", parsed.faults[0]),
            "sweep.yaml:8:3: scheduler.reduction_facter: unknown key; did you mean "
            "reduction_factor?");
  EXPECT_EQ(parsed.faults[0].pointer, "/scheduler/reduction_facter");
  EXPECT_EQ(parsed.faults[0].suggestion, "reduction_factor");
}

TEST(ParseFaults, NamesTheSectionOfAMisplacedKey) {
  EXPECT_EQ(FaultsOf(With("max_trials: 9\n")),
            "sweep.yaml:5:1: max_trials: unknown key; did you mean stop.max_trials?\n");
}

TEST(ParseFaults, ListsKnownKeysIfNoneIsSimilar) {
  EXPECT_EQ(
      FaultsOf(With("checkpoint: {zebra: 9}\n")),
      "sweep.yaml:5:14: checkpoint.zebra: unknown key; there are: every, keep_last, keep_best\n");
}

TEST(ParseFaults, RefusesKeysOfMissingFeatures) {
  for (const char* line :
       {"resources: {max_workers: 4}", "failure: {count_preemption: true}", "metric2: {}",
        "checkpoint: {unit: epoch}", "scheduler: {name: asha, max: 9, promote: true}"}) {
    EXPECT_THAT(FaultsOf(With(line)), HasSubstr("unknown key")) << line;
  }
}

TEST(ParseFaults, RefusesMinWorkersAboveWorkers) {
  EXPECT_EQ(FaultsOf(With("resources: {workers: 2, min_workers: 3}\n")),
            "sweep.yaml:5:38: resources.min_workers: 3 is above workers 2\n");
  EXPECT_EQ(FaultsOf(With("resources: {min_workers: 0}\n")),
            "sweep.yaml:5:26: resources.min_workers: 0 is below the smallest allowed, 1\n");
  EXPECT_EQ(FaultsOf(With("resources: {workers: 2, grow_after: 5m}\n")),
            "sweep.yaml:5:37: resources.grow_after: means nothing without min_workers; give that "
            "too, or remove this\n");
}

TEST(ParseFaults, ReportsAnUnknownAlgorithmOnlyOnce) {
  EXPECT_EQ(FaultsOf(With("scheduler: {name: ahsa, reduction_factor: 3}\n")),
            "sweep.yaml:5:19: scheduler.name: the text \"ahsa\" is not one of: fifo, none, asha, "
            "extrapolate, "
            "hyperband, median, pasha, pb2, pbt, pbt_replay, percentile; "
            "did you mean asha?\n");
}

TEST(ParseFaults, ReportsAllFaultsInFileOrder) {
  EXPECT_EQ(FaultsOf("apiVersion: attune/v2\n"
                     "kind: Trial\n"
                     "command: []\n"
                     "metric: {mode: best}\n"
                     "parameters:\n"
                     "  lr: {min: \"0.1\", max: 1}\n"
                     "resources: {workers: 0, memory_per_worker: 16}\n"
                     "failure: {stall_timeout: 600}\n"),
            "sweep.yaml:1:13: apiVersion: the text \"attune/v2\" is not one of: attune/v1; did you "
            "mean attune/v1?\n"
            "sweep.yaml:2:7: kind: the text \"Trial\" is not one of: Sweep\n"
            "sweep.yaml:3:1: command: is empty; name the program and its arguments\n"
            "sweep.yaml:4:1: metric.name: missing: a metric that the program reports\n"
            "sweep.yaml:4:16: metric.mode: the text \"best\" is not one of: min, max\n"
            "sweep.yaml:6:13: parameters.lr.min: expected a number, found the quoted text \"0.1\"; "
            "remove the quotes\n"
            "sweep.yaml:7:22: resources.workers: 0 is below the smallest allowed, 1\n"
            "sweep.yaml:7:44: resources.memory_per_worker: expected a size such as 512MiB or "
            "16GiB, found the integer 16 without a unit; write 16GiB, 16MiB or 16B\n"
            "sweep.yaml:8:26: failure.stall_timeout: expected a duration such as 90s, 10m or 2h, "
            "found the integer 600 without a unit; write 600s for seconds\n");
}

TEST(ParseFaults, ReportsErrorsOfAlgorithmsWithUnrelatedFaults) {
  const std::string search = "parameters: {lr: {min: 0.1, max: 1.0}}\n";
  const std::string metric = "metric: {name: loss, mode: min}\n";
  ParseOptions options = Options();
  options.program_fault = [](const std::string&) { return "no such file"; };
  const Parsed parsed =
      ParseSweep("command: [./nothere]\n" + metric + search + "scheduler: {name: asha}\n", options);
  EXPECT_THAT(FaultLines(parsed), HasSubstr("command[0]: /home/ada/mnist/nothere: no such file"));
  EXPECT_THAT(FaultLines(parsed), HasSubstr("scheduler.max: asha needs max"));
  EXPECT_THAT(FaultLines(parsed), HasSubstr("stop: auto never ends by itself"));

  const std::string file = "command: [train]\n" + metric + search;
  EXPECT_THAT(FaultsOf(file + "searcher: {seed: x}\nscheduler: {name: asha}\n"),
              HasSubstr("scheduler.max: asha needs max"));
  EXPECT_THAT(FaultsOf(file + "scheduler: {name: asha, max: x}\n"),
              HasSubstr("stop: auto never ends by itself"));
}

TEST(ParseFaults, DoesNotAskAlgorithmsAboutFaultyKeys) {
  const std::string file =
      "command: [train]\nmetric: {name: loss, mode: min}\n"
      "parameters: {lr: {min: 0.1, max: 1.0}}\n";
  for (const char* lines :
       {"stop: {max_trials: x}\n", "max_trials: 4\n", "resources: {gpus_per_worker: x}\n",
        "scheduler: {name: asha, max: x}\nstop: {max_trials: 4}\n"}) {
    const Parsed parsed = Parse(file + lines);
    EXPECT_EQ(parsed.faults.size(), 1u) << FaultLines(parsed);
  }
}

TEST(ParseFaults, RefusesAKeyTogetherWithItsAlias) {
  EXPECT_THAT(FaultsOf("command: [a]\nmetric: {name: a, mode: min, goal: maximize}\n"
                       "parameters: {a: {value: 1}}\n"),
              HasSubstr("sweep.yaml:2:30: metric.goal: goal is another name of mode"));
}

TEST(ParseFaults, SaysWhichTypeWasExpectedAndFound) {
  const std::pair<const char*, const char*> cases[] = {
      {"max_concurrent_trials: many", "expected an integer, found the text \"many\""},
      {"max_concurrent_trials: 1.5", "expected an integer, found the number 1.5"},
      {"max_concurrent_trials: \"3\"", "found the quoted text \"3\"; remove the quotes"},
      {"max_concurrent_trials: true", "expected an integer, found the boolean true"},
      {"max_concurrent_trials: [1]", "expected an integer, found a list"},
      {"max_concurrent_trials:", "expected an integer, found nothing"},
      {"max_concurrent_trials: 3000000000", "above the largest allowed, 2147483647"},
      {"max_concurrent_trials: 99999999999999999999", "is beyond"},
      {"searcher: random", "expected a map, found the text \"random\"; write {name: random}"},
      {"searcher: {seed: -1}", "-1 is below the smallest allowed, 0"},
      {"searcher: {seed: 9007199254740992}", "is beyond"},
      {"resources: [1]", "expected a map, found a list"},
      {"resources: 4", "expected a map, found the integer 4"},
      {"tags: one", "expected a list of texts, found the text \"one\""},
      {"tags: [[a]]", "tags[0]: expected text, found a list"},
      {"tags: ['']", "tags[0]: is empty"},
      {"env: [A]", "expected a map of texts, found a list"},
      {"env: {A: }", "env.A: expected text, found nothing"},
      {"env: {A=B: c}", "is no name of an environment variable"},
      {"env: {ATTUNE_RANK: 3}", "env.ATTUNE_RANK: names that begin with ATTUNE_"},
      {"secrets: KEY", "expected a list such as [WANDB_API_KEY], found the text \"KEY\""},
      {"secrets: [\"1KEY\"]", "secrets[0]: is no name of a secret"},
      {"secrets: [A-B]", "secrets[0]: is no name of a secret"},
      {"secrets: [ATTUNE_TOKEN]", "secrets[0]: is no name of a secret"},
      {"secrets: [KEY, KEY]", "secrets[1]: KEY is listed twice"},
      {"secrets: [KEY]\nenv: {KEY: a}", "secrets[0]: KEY is also in env"},
      {"name: ''", "name: is empty"},
      {"name: \"a\\nb\"", "name: must be one line"},
      {"warm_start: s3", "expected a list"},
      {"warm_start: [x3]", "x3"},
      {"warm_start: [s3, s4, s3]", "s3 stands here twice"},
      {"initial_points: {lr: 1}", "expected a list such as [{lr: 0.1}], found a map"},
      {"initial_points: [1]", "initial_points[0]: expected a map"},
      {"failure: {stall_timeout: 10 minutes}", "units are ms, s, m, h and d"},
      {"failure: {stall_timeout: 100ms}", "0.1s is below the smallest allowed, 1s"},
      {"failure: {backoff: 25h}", "25h is above the largest allowed, 1d"},
      {"failure: {backoff: -1s}", "found the text \"-1s\""},
      {"checkpoint: {keep_last: -1}", "-1 is below the smallest allowed, 0"},
      {"priority: 1001", "1001 is above the largest allowed, 1000"},
      {"priority: -1001", "-1001 is below the smallest allowed, -1000"},
      {"resources: {placement: spred}", "did you mean spread?"},
      {"resources: {requires: gpu}", "expected a map such as {gpu: h100}, found the text"},
      {"resources: {requires: {gpu: }}", "resources.requires.gpu: expected text, found nothing"},
      {"resources: {requires: {gpu: []}}", "resources.requires.gpu: list at least one value"},
      {"resources: {requires: {gpu: [a, a]}}", "resources.requires.gpu[1]: a stands here twice"},
      {"resources: {requires: {gpu: h 100}}", "`h 100` is no value of a label"},
      {"resources: {requires: {g=u: h100}}", "`g=u` is no name of a label"},
      {"resources: {memory_per_worker: 16G}", "with a unit: B, KiB"},
      {"resources: {memory_per_worker: 0.3B}", "a whole number of bytes"},
      {"resources: {memory_per_worker: 9999999TiB}", "a whole number of bytes"},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_THAT(FaultsOf(With(std::string(line) + "\n")), HasSubstr(message)) << line;
  }
}

TEST(ParseFaults, LocatesErrorsOfAlgorithms) {
  EXPECT_THAT(FaultsOf(With("scheduler:\n  name: asha\n  max: 9\n  min: 9\n")),
              HasSubstr("sweep.yaml:8:8: scheduler.min: 9 is not below max 9"));
  EXPECT_THAT(FaultsOf(With("searcher: {name: grid}\n")),
              HasSubstr("sweep.yaml:4:14: parameters.lr: grid search cannot list a real range"));
}

TEST(ParseFaults, SuggestsKeysForNamesOfOtherTuners) {
  EXPECT_THAT(
      FaultsOf(With("scheduler: {name: asha, max_t: 9, grace_period: 3}\n")),
      ::testing::AllOf(HasSubstr("scheduler.max_t: unknown key; did you mean max?"),
                       HasSubstr("scheduler.grace_period: unknown key; did you mean min?")));
}

TEST(ParseFaults, LimitsDurations) {
  EXPECT_EQ(Spec(With("failure: {stall_timeout: 36500d}\n")).failure.stall_timeout, kMaxDuration);
  EXPECT_THAT(FaultsOf(With("failure: {stall_timeout: 36501d}\n")),
              HasSubstr("36501d is above the largest allowed, 36500d"));
  EXPECT_EQ(Spec(With("failure: {grace: 24h}\n")).failure.grace, kMaxGrace);
  EXPECT_THAT(FaultsOf(With("failure: {grace: 25h}\n")),
              HasSubstr("25h is above the largest allowed, 1d"));
}

TEST(ParseFaults, RefusesUnknownPlaceholders) {
  const std::pair<const char*, const char*> cases[] = {
      {"${arg}", "unknown placeholder ${arg}"},
      {"x${args}", "${args} must be an argument of its own"},
      {"${param.l}", "${param.l}: there is no such parameter; did you mean lr?"},
      {"${param.m}", "this parameter has a `when` and does not always exist"},
      {"${config", "a ${ without its }"},
  };
  const std::string rest =
      "metric: {name: a, mode: min}\nstop: {max_trials: 1}\n"
      "parameters: {lr: {values: [a, b]}, m: {min: 1, max: 2, when: {lr: a}}}\n";
  for (const auto& [argument, message] : cases) {
    EXPECT_THAT(FaultsOf(rest + "command: [train, '" + argument + "']\n"), HasSubstr(message));
  }
  Spec(rest + "command: [train, '${args}', '--c=${config}', '${param.lr}', '$${HOME}', '$5']\n");
}

TEST(ParseFaults, LimitsTheLengthOfNames) {
  std::string name(kMaxNameChars, 'a');
  EXPECT_EQ(Spec(With("name: " + name + "\n")).name, name);
  EXPECT_THAT(FaultsOf(With("name: " + name + "a\n")), HasSubstr("longer than 128"));
}

TEST(FaultOf, HasThePlaceOfTheKeyThatTheErrorNames) {
  const std::string file = With("warm_start: [s9]\n");
  const auto fault = FaultOf({ErrorCode::kInvalid, "warm_start: there is no sweep s9"}, file);
  ASSERT_TRUE(fault);
  EXPECT_EQ(FormatFault("sweep.yaml", *fault), "sweep.yaml:5:1: warm_start: there is no sweep s9");
  EXPECT_EQ(fault->pointer, "/warm_start");
  EXPECT_FALSE(FaultOf({ErrorCode::kInvalid, "some day: it rains"}, file));
  EXPECT_FALSE(FaultOf({ErrorCode::kInvalid, "no key at all"}, file));
}

}  // namespace
}  // namespace attune::sweepfile

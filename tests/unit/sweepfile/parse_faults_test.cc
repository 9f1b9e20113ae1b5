#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParseFaults, LocatesFaultsOfMetricsAndConstraints) {
  const std::string rest = "parameters: {lr: {min: 0.1, max: 1.0}}\nstop: {patience: 5}\n";
  const auto make_file = [&](const std::string& head) { return head + rest; };
  ExpectGolden(
      "sweepfile/metrics",
      ExpectFaults(
          {{"", "1:1: metric: "},
           {"metric: {name: a, mode: min}\nmetrics: [{name: b, mode: min}]\n", "2:1: metrics: "},
           {"metrics: []\n", "1:1: metrics: "},
           {"metrics: {}\n", "1:1: metrics: "},
           {"metrics: [{name: a, mode: min}, {name: a, mode: max}]\n", "1:40: metrics[1].name: "},
           {"metrics: [{name: a, mode: min}, {name: b, mod: max}]\n", "1:43: metrics[1].mod: "},
           {"metrics: [{name: a, mode: min}, {name: b}]\n", "metrics[1].mode: "},
           {"metric: {name: a, mode: min}\nconstraints: {a: {}}\n", "2:15: constraints.a: "},
           {"metric: {name: a, mode: min}\nconstraints: {a: {min: 3, max: 2}}\n",
            "2:32: constraints.a.max: "},
           {"metric: {name: a, mode: min}\nconstraints: {a: 20}\n", "2:18: constraints.a: "}},
          make_file));
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
  EXPECT_THAT(FaultsOf(text(kMaxObjectives + 1, 1)),
              AllOf(HasSubstr(" metrics: "), HasSubstr(" 8 ")));
  EXPECT_THAT(FaultsOf(text(1, kMaxConstraints + 1)),
              AllOf(HasSubstr(" constraints: "), HasSubstr(" 32 ")));
}

TEST(ParseFaults, RefusesProgramKeysWithoutACommand) {
  const std::string rest = "metric: {name: loss, mode: min}\nparameters: {lr: {value: 1}}\n";
  const std::pair<const char*, const char*> cases[] = {
      {"env: {A: b}", "3:1 env\n"},
      {"code: .", "3:1 code\n"},
      {"working_directory: /tmp", "3:1 working_directory\n"},
      {"reports: {pattern: x}", "3:1 reports\n"},
      {"resources: {workers: 2}", "3:1 resources\n"},
      {"checkpoint: {every: 2}", "3:1 checkpoint\n"},
      {"failure: {stall_timeout: 1m}", "3:11 failure.stall_timeout\n"},
      {"failure: {on_log: []}", "3:11 failure.on_log\n"},
      {"stop: {max_gpu_hours: 2}", "3:8 stop.max_gpu_hours\n"},
  };
  for (const auto& [line, place] : cases) EXPECT_EQ(PlacesOf(rest + line + "\n"), place);
}

TEST(ParseFaults, SuggestsAKeyForAnUnknownKey) {
  const Parsed parsed = Parse(With("scheduler:\n  name: asha\n  max: 9\n  reduction_facter: 3\n"));
  ASSERT_EQ(parsed.faults.size(), 1u);
  EXPECT_EQ(PlaceLines(parsed), "8:3 scheduler.reduction_facter\n");
  EXPECT_EQ(parsed.faults[0].pointer, "/scheduler/reduction_facter");
  EXPECT_EQ(parsed.faults[0].suggestion, "reduction_factor");
}

TEST(ParseFaults, NamesTheSectionOfAMisplacedKey) {
  const Parsed parsed = Parse(With("max_trials: 9\n"));
  ASSERT_EQ(PlaceLines(parsed), "5:1 max_trials\n");
  EXPECT_EQ(parsed.faults[0].suggestion, "stop.max_trials");
}

TEST(ParseFaults, ListsKnownKeysIfNoneIsSimilar) {
  const Parsed parsed = Parse(With("checkpoint: {zebra: 9}\n"));
  ASSERT_EQ(PlaceLines(parsed), "5:14 checkpoint.zebra\n");
  EXPECT_EQ(parsed.faults[0].suggestion, "");
  EXPECT_THAT(parsed.faults[0].message, HasSubstr("every, keep_last, keep_best"));
}

TEST(ParseFaults, RefusesKeysOfMissingFeatures) {
  const std::pair<const char*, const char*> cases[] = {
      {"resources: {max_workers: 4}", "resources.max_workers: "},
      {"failure: {count_preemption: true}", "failure.count_preemption: "},
      {"metric2: {}", "metric2: "},
      {"checkpoint: {unit: epoch}", "checkpoint.unit: "},
      {"scheduler: {name: asha, max: 9, promote: true}", "scheduler.promote: "},
  };
  for (const auto& [line, place] : cases) EXPECT_THAT(FaultsOf(With(line)), HasSubstr(place));
}

TEST(ParseFaults, RefusesMinWorkersAboveWorkers) {
  EXPECT_EQ(PlacesOf(With("resources: {workers: 2, min_workers: 3}\n")),
            "5:38 resources.min_workers\n");
  EXPECT_EQ(PlacesOf(With("resources: {min_workers: 0}\n")), "5:26 resources.min_workers\n");
  EXPECT_EQ(PlacesOf(With("resources: {workers: 2, grow_after: 5m}\n")),
            "5:37 resources.grow_after\n");
}

TEST(ParseFaults, ReportsAnUnknownAlgorithmOnlyOnce) {
  const Parsed parsed = Parse(With("scheduler: {name: ahsa, reduction_factor: 3}\n"));
  ASSERT_EQ(PlaceLines(parsed), "5:19 scheduler.name\n");
  EXPECT_EQ(parsed.faults[0].suggestion, "asha");
  EXPECT_THAT(parsed.faults[0].message,
              HasSubstr("fifo, none, asha, extrapolate, hyperband, median, pasha, pb2, pbt, "
                        "pbt_replay, percentile"));
}

TEST(ParseFaults, ReportsAllFaultsInFileOrder) {
  const char* const file =
      "apiVersion: attune/v2\n"
      "kind: Trial\n"
      "command: []\n"
      "metric: {mode: best}\n"
      "parameters:\n"
      "  lr: {min: \"0.1\", max: 1}\n"
      "resources: {workers: 0, memory_per_worker: 16}\n"
      "failure: {stall_timeout: 600}\n";
  EXPECT_EQ(PlacesOf(file),
            "1:13 apiVersion\n"
            "2:7 kind\n"
            "3:1 command\n"
            "4:1 metric.name\n"
            "4:16 metric.mode\n"
            "6:13 parameters.lr.min\n"
            "7:22 resources.workers\n"
            "7:44 resources.memory_per_worker\n"
            "8:26 failure.stall_timeout\n");
  ExpectGolden("sweepfile/all_faults", FaultsOf(file));
}

TEST(ParseFaults, ReportsErrorsOfAlgorithmsWithUnrelatedFaults) {
  const std::string search = "parameters: {lr: {min: 0.1, max: 1.0}}\n";
  const std::string metric = "metric: {name: loss, mode: min}\n";
  ParseOptions options = Options();
  options.program_fault = [](const std::string&) { return "no such file"; };
  const Parsed parsed =
      ParseSweep("command: [./nothere]\n" + metric + search + "scheduler: {name: asha}\n", options);
  EXPECT_THAT(FaultLines(parsed), HasSubstr("command[0]: /home/ada/mnist/nothere: "));
  EXPECT_THAT(FaultLines(parsed), HasSubstr("scheduler.max: "));
  EXPECT_THAT(FaultLines(parsed), HasSubstr(" stop: "));

  const std::string file = "command: [train]\n" + metric + search;
  EXPECT_THAT(FaultsOf(file + "searcher: {seed: x}\nscheduler: {name: asha}\n"),
              HasSubstr("scheduler.max: "));
  EXPECT_THAT(FaultsOf(file + "scheduler: {name: asha, max: x}\n"), HasSubstr(" stop: "));
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
              HasSubstr("sweep.yaml:2:30: metric.goal: "));
}

TEST(ParseFaults, SaysWhichTypeWasExpectedAndFound) {
  ExpectGolden(
      "sweepfile/types",
      ExpectFaults(
          {
              {"max_concurrent_trials: many", "max_concurrent_trials: "},
              {"max_concurrent_trials: 1.5", "max_concurrent_trials: "},
              {"max_concurrent_trials: \"3\"", "max_concurrent_trials: "},
              {"max_concurrent_trials: true", "max_concurrent_trials: "},
              {"max_concurrent_trials: [1]", "max_concurrent_trials: "},
              {"max_concurrent_trials:", "max_concurrent_trials: "},
              {"max_concurrent_trials: 3000000000", "max_concurrent_trials: "},
              {"max_concurrent_trials: 99999999999999999999", "max_concurrent_trials: "},
              {"searcher: random", "searcher: "},
              {"searcher: {seed: -1}", "searcher.seed: "},
              {"searcher: {seed: 9007199254740992}", "searcher.seed: "},
              {"resources: [1]", "resources: "},
              {"resources: 4", "resources: "},
              {"tags: one", "tags: "},
              {"tags: [[a]]", "tags[0]: "},
              {"tags: ['']", "tags[0]: "},
              {"env: [A]", "env: "},
              {"env: {A: }", "env.A: "},
              {"env: {A=B: c}", "env.A=B: "},
              {"env: {ATTUNE_RANK: 3}", "env.ATTUNE_RANK: "},
              {"secrets: KEY", "secrets: "},
              {"secrets: [\"1KEY\"]", "secrets[0]: "},
              {"secrets: [A-B]", "secrets[0]: "},
              {"secrets: [ATTUNE_TOKEN]", "secrets[0]: "},
              {"secrets: [KEY, KEY]", "secrets[1]: "},
              {"secrets: [KEY]\nenv: {KEY: a}", "secrets[0]: "},
              {"name: ''", "name: "},
              {"name: \"a\\nb\"", "name: "},
              {"warm_start: s3", "warm_start: "},
              {"warm_start: [x3]", "warm_start[0]: "},
              {"warm_start: [s3, s4, s3]", "warm_start[2]: "},
              {"initial_points: {lr: 1}", "initial_points: "},
              {"initial_points: [1]", "initial_points[0]: "},
              {"failure: {stall_timeout: 10 minutes}", "failure.stall_timeout: "},
              {"failure: {stall_timeout: 100ms}", "failure.stall_timeout: "},
              {"failure: {backoff: 25h}", "failure.backoff: "},
              {"failure: {backoff: -1s}", "failure.backoff: "},
              {"checkpoint: {keep_last: -1}", "checkpoint.keep_last: "},
              {"priority: 1001", "priority: "},
              {"priority: -1001", "priority: "},
              {"resources: {placement: spred}", "resources.placement: "},
              {"resources: {requires: gpu}", "resources.requires: "},
              {"resources: {requires: {gpu: }}", "resources.requires.gpu: "},
              {"resources: {requires: {gpu: []}}", "resources.requires.gpu: "},
              {"resources: {requires: {gpu: [a, a]}}", "resources.requires.gpu[1]: "},
              {"resources: {requires: {gpu: h 100}}", "resources.requires.gpu: "},
              {"resources: {requires: {g=u: h100}}", "resources.requires.g=u: "},
              {"resources: {memory_per_worker: 16G}", "resources.memory_per_worker: "},
              {"resources: {memory_per_worker: 0.3B}", "resources.memory_per_worker: "},
              {"resources: {memory_per_worker: 9999999TiB}", "resources.memory_per_worker: "},
          },
          [](const std::string& line) { return With(line + "\n"); }));
}

TEST(ParseFaults, LocatesErrorsOfAlgorithms) {
  EXPECT_THAT(FaultsOf(With("scheduler:\n  name: asha\n  max: 9\n  min: 9\n")),
              HasSubstr("sweep.yaml:8:8: scheduler.min: "));
  EXPECT_THAT(FaultsOf(With("searcher: {name: grid}\n")),
              HasSubstr("sweep.yaml:4:14: parameters.lr: "));
}

TEST(ParseFaults, SuggestsKeysForNamesOfOtherTuners) {
  const Parsed parsed = Parse(With("scheduler: {name: asha, max_t: 9, grace_period: 3}\n"));
  std::map<std::string, std::string> suggestions;
  for (const Fault& fault : parsed.faults) suggestions[fault.path] = fault.suggestion;
  EXPECT_EQ(suggestions["scheduler.max_t"], "max");
  EXPECT_EQ(suggestions["scheduler.grace_period"], "min");
}

TEST(ParseFaults, LimitsDurations) {
  EXPECT_EQ(Spec(With("failure: {stall_timeout: 36500d}\n")).failure.stall_timeout, kMaxDuration);
  EXPECT_THAT(FaultsOf(With("failure: {stall_timeout: 36501d}\n")),
              AllOf(HasSubstr("failure.stall_timeout: 36501d "), HasSubstr("36500d")));
  EXPECT_EQ(Spec(With("failure: {grace: 24h}\n")).failure.grace, kMaxGrace);
  EXPECT_THAT(FaultsOf(With("failure: {grace: 25h}\n")),
              AllOf(HasSubstr("failure.grace: 25h "), HasSubstr("1d")));
}

TEST(ParseFaults, RefusesUnknownPlaceholders) {
  const std::string rest =
      "metric: {name: a, mode: min}\nstop: {max_trials: 1}\n"
      "parameters: {lr: {values: [a, b]}, m: {min: 1, max: 2, when: {lr: a}}}\n";
  ExpectGolden("sweepfile/placeholders", ExpectFaults({{"${arg}", "command"},
                                                       {"x${args}", "command[1]: "},
                                                       {"${param.l}", "command"},
                                                       {"${param.m}", "command[1]: "},
                                                       {"${config", "command[1]: "}},
                                                      [&](const std::string& argument) {
                                                        return rest + "command: [train, '" +
                                                               argument + "']\n";
                                                      }));
  Spec(rest + "command: [train, '${args}', '--c=${config}', '${param.lr}', '$${HOME}', '$5']\n");
}

TEST(ParseFaults, LimitsTheLengthOfNames) {
  std::string name(kMaxNameChars, 'a');
  EXPECT_EQ(Spec(With("name: " + name + "\n")).name, name);
  EXPECT_THAT(FaultsOf(With("name: " + name + "a\n")), HasSubstr("name: longer than 128 "));
}

TEST(FaultOf, HasThePlaceOfTheKeyThatTheErrorNames) {
  const std::string file = With("warm_start: [s9]\n");
  const auto fault = FaultOf({ErrorCode::kInvalid, "warm_start: there is no sweep s9"}, file);
  ASSERT_TRUE(fault);
  EXPECT_EQ(std::pair(fault->line, fault->column), std::pair(5, 1));
  EXPECT_EQ(fault->path, "warm_start");
  EXPECT_EQ(fault->pointer, "/warm_start");
  EXPECT_FALSE(FaultOf({ErrorCode::kInvalid, "some day: it rains"}, file));
  EXPECT_FALSE(FaultOf({ErrorCode::kInvalid, "no key at all"}, file));
}

}  // namespace
}  // namespace attune::sweepfile

#include "base/result.h"
#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

TEST(ParseSweep, ReadsEveryKey) {
  const SweepSpec spec = Spec(R"(
apiVersion: attune/v1
kind: Sweep
name: resnet
tags: [baseline, 2024]
command: [./train, --data, /data, "${args}", 5]
env: {OMP_NUM_THREADS: 1, MODE: "no"}
working_directory: runs/../work/
metric: {name: val_loss, goal: minimize, target: 0.05}
parameters:
  lr: {min: 1e-5, max: 0.1, scale: log}
  layers: {min: 2, max: 8}
  batch: {value: 256}
initial_points: [{lr: 1e-3, layers: 4}]
searcher: {name: tpe, seed: 7}
scheduler: {name: asha, min: 1, max: 81, reduction_factor: 3}
resources: {workers: 8, cpus_per_worker: 4, gpus_per_worker: 1, memory_per_worker: 16GiB,
            placement: spread, requires: {gpu: [h100, a100], rack: 7, zone: no}}
max_concurrent_trials: 16
priority: -3
warm_start: [s3, s12]
checkpoint: {every: 2, keep_last: 3, keep_best: 0}
failure: {max_restarts: 1, max_failed_trials: 2, backoff: 500ms, stall_timeout: 90s, grace: 0s}
stop: {max_trials: 500, max_time: 24h, max_gpu_hours: 40, patience: 100, max_trial_time: 2h,
       trial_patience: 5}
)");
  EXPECT_EQ(spec.name, "resnet");
  EXPECT_THAT(spec.tags, ElementsAre("baseline", "2024"));
  EXPECT_THAT(spec.program.command,
              ElementsAre("/home/ada/mnist/train", "--data", "/data", "${args}", "5"));
  EXPECT_THAT(spec.program.environment,
              ElementsAre(Pair("OMP_NUM_THREADS", "1"), Pair("MODE", "no")));
  EXPECT_EQ(spec.program.working_directory, "/home/ada/mnist/work");
  EXPECT_EQ(spec.objective(), Minimise("val_loss"));
  EXPECT_THAT(spec.initial_points,
              ElementsAre(Config{{"lr", 1e-3}, {"layers", int64_t{4}}, {"batch", int64_t{256}}}));
  EXPECT_EQ(spec.searcher.name, "tpe");
  EXPECT_EQ(spec.seed, 7u);
  EXPECT_EQ(spec.scheduler.name, "asha");
  EXPECT_EQ(spec.scheduler.options.at("reduction_factor"), Value(int64_t{3}));
  EXPECT_EQ(spec.max_step, Step(81));
  EXPECT_EQ(spec.gang.workers, 8);
  EXPECT_EQ(spec.gang.per_worker,
            (Resources{.cpus = 4, .gpus = 1, .memory_bytes = int64_t{16} << 30}));
  EXPECT_EQ(spec.max_concurrent_trials, 16);
  EXPECT_EQ(spec.gang.placement, PlacementPolicy::kSpread);
  EXPECT_EQ(spec.gang.required,
            (Requirements{{"gpu", {"a100", "h100"}}, {"rack", {"7"}}, {"zone", {"no"}}}));
  EXPECT_EQ(spec.priority, -3);
  EXPECT_THAT(spec.warm_start, ElementsAre(SweepId(3), SweepId(12)));
  EXPECT_EQ(spec.checkpoint, (CheckpointPolicy{Step(2), 3, 0}));
  EXPECT_EQ(spec.failure, (FailurePolicy{1, 2, Seconds(0.5), Seconds(90), Seconds(0)}));
  EXPECT_EQ(spec.stop, (StopPolicy{.max_trials = 500,
                                   .max_time = Seconds(86400),
                                   .max_gpu_hours = 40,
                                   .patience = 100,
                                   .max_trial_time = Seconds(7200),
                                   .trial_patience = 5,
                                   .targets = {0.05}}));
}

TEST(ParseSweep, FillsDefaults) {
  const SweepSpec spec = Spec(With(""));
  EXPECT_EQ(spec.name, "mnist");  // the folder, because the file is called sweep.yaml
  EXPECT_EQ(spec.program.working_directory, "/home/ada/mnist");
  EXPECT_THAT(spec.program.command, ElementsAre("train"));  // a bare name is left to PATH
  EXPECT_EQ(spec.searcher.name, "auto");
  EXPECT_EQ(spec.seed, 0u);
  EXPECT_EQ(spec.scheduler.name, "fifo");
  EXPECT_EQ(spec.gang, GangSpec{});
  EXPECT_EQ(spec.failure, FailurePolicy{});
  EXPECT_EQ(spec.checkpoint, CheckpointPolicy{});
  EXPECT_EQ(spec.stop, StopPolicy{.max_trials = 4});
  EXPECT_EQ(spec.priority, 0);
}

TEST(ParseSweep, ReadsSeveralMetricsAndConstraints) {
  const SweepSpec spec = Spec(R"(
metrics: [{name: accuracy, mode: max}, {name: latency_ms, goal: minimize, target: 8},
          {name: watts, mode: min}]
constraints: {latency_ms: {max: 20}, recall: {min: 0.5, max: 1}}
parameters: {lr: {min: 0.1, max: 1.0}}
)");
  EXPECT_THAT(spec.objectives,
              ElementsAre(Maximise("accuracy"), Minimise("latency_ms"), Minimise("watts")));
  EXPECT_THAT(spec.stop.targets, ElementsAre(std::nullopt, 8.0));
  EXPECT_THAT(spec.constraints, ElementsAre(Constraint{.metric = "latency_ms", .max = 20},
                                            Constraint{.metric = "recall", .min = 0.5, .max = 1}));
  EXPECT_THAT(spec.ReportedMetrics(),
              ElementsAre("accuracy", "latency_ms", "watts", "latency_ms", "recall"));
  EXPECT_EQ(Spec(ResolvedYaml(spec)), spec);
}

TEST(ParseSweep, ReadsTheMetricThatIsTime) {
  const SweepSpec spec = Spec(With("scheduler: {name: asha, time_attr: samples, max: 90000}\n"));
  EXPECT_EQ(spec.time_attr, "samples");
  EXPECT_EQ(spec.max_step, Step(90000));
  EXPECT_THAT(spec.ReportedMetrics(), ElementsAre("loss", "samples"));
  EXPECT_EQ(Spec(ResolvedYaml(spec)), spec);
  EXPECT_THAT(FaultsOf(With("scheduler: {name: asha, time_attr: \"\", max: 9}\n")),
              StartsWith("sweep.yaml:5:"));
}

TEST(ParseSweep, AcceptsASweepWithoutACommand) {
  const SweepSpec spec = Spec(
      "metric: {name: loss, mode: min}\nparameters: {lr: {min: 0.1, max: 1.0}}\n"
      "failure: {max_restarts: 0, backoff: 0s}\nstop: {patience: 5}\n");
  EXPECT_TRUE(spec.External());
  EXPECT_EQ(spec.program, Program{});
  EXPECT_EQ(spec.failure.backoff, Seconds(0));
}

TEST(ParseSweep, TakesTheNameFromTheStemOfTheFile) {
  ParseOptions options = Options();
  options.file = "sweeps/wide.yaml";
  EXPECT_EQ(ParseSweep(With(""), options).spec->name, "wide");
}

TEST(ParseSweep, FillsTheOptionsOfTheScheduler) {
  const SweepSpec spec = Spec(With("scheduler: {name: asha, max: 9}\n"));
  for (const Option& option : AllAlgorithms().FindScheduler("asha")->options) {
    EXPECT_EQ(spec.scheduler.options.at(option.name), option.fallback) << option.name;
  }
}

TEST(ParseSweep, AcceptsNoneAsANameOfFifo) {
  EXPECT_EQ(Spec(With("scheduler: {name: none}\n")).scheduler.name, "fifo");
}

TEST(ParseSweep, ReadsJson) {
  const SweepSpec spec = Spec(
      "{\n\t\"command\":[\"train\"],\"tags\":[\"\\ud83d\\ude80\"],\n"
      "\t\"metric\":{\"name\":\"loss\",\"mode\":\"min\"},\"stop\":{\"max_trials\":4},\n"
      "\t\"parameters\":{\"lr\":{\"min\":1e-3,\"max\":1.0},\"n\":{\"min\":1,\"max\":4}}}");
  EXPECT_THAT(spec.tags, ElementsAre("🚀"));
  EXPECT_EQ(spec.space.Find("lr")->domain, Domain(FloatDomain{.min = 1e-3, .max = 1.0}));
  EXPECT_EQ(spec.space.Find("n")->domain, Domain(IntDomain{.min = 1, .max = 4}));
}

TEST(ParseSweep, ReadsMinWorkers) {
  const GangSpec gang =
      Spec(With("resources: {workers: 8, min_workers: 2, grow_after: 5m}\n")).gang;
  EXPECT_EQ(gang.workers, 8);
  EXPECT_EQ(gang.min_workers, 2);
  EXPECT_EQ(gang.grow_after, Seconds(300));
  EXPECT_EQ(Spec(With("resources: {workers: 8, min_workers: 8}\n")).gang,
            Spec(With("resources: {workers: 8}\n")).gang)
      << "the same thing, said otherwise";
}

TEST(ParseSweep, ReadsSharesOfAGpu) {
  const std::string file =
      "command: [train]\nmetric: {name: loss, mode: min}\nstop: {max_trials: 4}\n"
      "parameters: {lr: {min: 0.1, max: 1.0}}\nresources: {gpus_per_worker: ";
  const auto gang = [&](const std::string& gpus) { return Parse(file + gpus + "}\n").spec->gang; };
  EXPECT_EQ(gang("0.25").per_worker.gpus, 1);
  EXPECT_EQ(gang("0.25").gpu_percent, 25);
  EXPECT_EQ(gang("0.07").gpu_percent, 7);
  for (const std::string whole : {"3", "3.0"}) {
    EXPECT_EQ(gang(whole).per_worker.gpus, 3);
    EXPECT_EQ(gang(whole).gpu_percent, 100);
  }
  EXPECT_EQ(gang("0").per_worker.gpus, 0);
  for (const std::string wrong : {"1.5", "0.005", "0.333", "0.999"})
    EXPECT_THAT(FaultsOf(file + wrong + "}\n"),
                HasSubstr("resources.gpus_per_worker: " + wrong + " "));
  EXPECT_THAT(FaultsOf(file + "-1}\n"), HasSubstr("resources.gpus_per_worker: "));
  EXPECT_THAT(FaultsOf(file + "0.5, workers: 2}\n"), HasSubstr("resources.gpus_per_worker: "));
}

TEST(ParseSweep, RequiresALimitOnlyForAnInfiniteSpace) {
  const std::string rest = "metric: {name: loss, mode: min}\ncommand: [train]\n";
  const std::string finite = rest + "parameters: {n: {min: 1, max: 3}}\n";
  const std::string random =
      rest + "parameters: {n: {min: 1.0, max: 3.0}}\nsearcher: {name: random}\n";
  EXPECT_THAT(FaultsOf(random), HasSubstr(" stop: "));
  EXPECT_THAT(FaultsOf(random + "stop: {max_trial_time: 1h}\n"), HasSubstr(" stop: "));
  EXPECT_EQ(Spec(random + "stop: {max_time: 1h}\n").stop.max_time, Seconds(3600));
  for (const std::string name : {"random", "sobol", "grid"})
    EXPECT_EQ(Spec(finite + "searcher: {name: " + name + "}\n").stop, StopPolicy{}) << name;
  const std::string constant = rest + "parameters: {n: {value: 1}}\nsearcher: {name: random}\n";
  EXPECT_THAT(FaultsOf(constant), HasSubstr(" stop: "));
}

TEST(ParseSweep, AsksWhetherTheProgramExists) {
  ParseOptions options = Options();
  std::string asked;
  options.program_fault = [&](const std::string& path) {
    asked = path;
    return "no such file";
  };
  const std::string rest =
      "metric: {name: loss, mode: min}\nstop: {max_trials: 1}\nparameters: {n: {value: 1}}\n";
  const Parsed parsed = ParseSweep(rest + "command: [bin/train]\n", options);
  EXPECT_EQ(asked, "/home/ada/mnist/bin/train");
  EXPECT_EQ(PlaceLines(parsed), "4:11 command[0]\n");

  asked.clear();
  EXPECT_TRUE(ParseSweep(rest + "command: [train]\n", options).spec);
  EXPECT_EQ(asked, "");
}

TEST(ParseSweep, RequiresAbsolutePathsWithoutADirectory) {
  ParseOptions options = Options();
  options.directory = "";
  const Parsed parsed = ParseSweep(
      "command: [./train]\nmetric: {name: a, mode: min}\nparameters: {n: {value: 1}}\n"
      "stop: {max_trials: 1}\n",
      options);
  EXPECT_THAT(FaultLines(parsed), HasSubstr("sweep.yaml:1:11: command[0]: "));
  EXPECT_THAT(FaultLines(parsed), HasSubstr("working_directory: "));
}

}  // namespace
}  // namespace attune::sweepfile

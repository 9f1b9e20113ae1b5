#include "sweepfile/codec.h"

#include <cmath>
#include <limits>

#include "base/result.h"
#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Json Reread(const Json& json) { return Json::parse(json.dump()); }

// A spec in which no field has its default.
SweepSpec FullSpec() {
  return {
      .name = "résumé \"1e-3\"",
      .tags = {"true", "a b", "1e-3"},
      .program = {.command = {"/bin/train", "", "${args}", "~", "line\nbreak"},
                  .environment = {{"Z", "1"}, {"A", ""}},
                  .secrets = {"WANDB_API_KEY", "B"},
                  .working_directory = "/home/ada/mnist",
                  .report_pattern = R"x(\bloss: "(?P<val_loss>\S+)")x"},
      .objectives = {Minimise("val_loss")},
      .space = SearchSpace(
          {{.name = "z", .domain = FloatDomain{.min = 1.0, .max = 2.0, .scale = Scale::kLog}},
           {.name = "y",
            .domain = FloatDomain{.min = -0.0, .max = 1.0, .step = 0.1},
            .when = {{.parent = "x", .any_of = {Value("no"), Value(int64_t{1})}},
                     {.parent = "w", .at_least = 2, .at_most = 5e-1 + 3}}},
           {.name = "x",
            .domain = CategoricalDomain{{Value("no"), Value(int64_t{1}), Value(true), Value(2.0),
                                         Value("1")}}},
           {.name = "w", .domain = IntDomain{.min = 1, .max = 9, .step = 2}},
           {.name = "a.b", .domain = ConstantDomain{0.1 + 0.2}}}),
      .initial_points = {Config{{"z", 1.0}, {"x", true}, {"w", int64_t{1}}, {"a.b", 0.1 + 0.2}}},
      .searcher = {.name = "gp", .options = {{"startup_trials", int64_t{9}}}},
      .seed = (uint64_t{1} << 53) - 1,
      .scheduler = {.name = "asha",
                    .options = {{"min", int64_t{2}},
                                {"mode", std::string("stop")},
                                {"reduction_factor", int64_t{5}},
                                {"brackets", int64_t{1}}}},
      .max_step = Step(81),
      .gang = {.workers = 8,
               .min_workers = 3,
               .grow_after = Seconds(0.1 + 0.2),
               .per_worker = {.cpus = 4, .gpus = 1, .memory_bytes = 1234567},
               .placement = PlacementPolicy::kSpread,
               .required = {{"gpu", {"a100", "h100"}}, {"zone", {"a"}}}},
      .max_concurrent_trials = 7,
      .priority = -5,
      .checkpoint = {Step(3), 4, 0},
      .failure = {1, 2, Seconds(0.001), Seconds(1.1)},
      .stop = {.max_trials = 500,
               .max_time = Seconds(0.1 + 0.2),
               .max_gpu_hours = 0.1,
               .patience = 3,
               .max_trial_time = Seconds(90),
               .trial_patience = 2,
               .targets = {-0.5}},
      .warm_start = {SweepId(3), SweepId(12)}};
}

TEST(Codec, SpecsReturnAsTheyWere) {
  const SweepSpec spec = FullSpec();
  const Result<SweepSpec> read = SpecFromJson(Reread(ToJson(spec)));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, spec);
  EXPECT_EQ(ToJson(*read).dump(), ToJson(spec).dump());
}

TEST(Codec, KeysThatALogLacksHaveTheirDefaults) {
  const SweepSpec spec = FullSpec();
  for (const FileSection& section : kFileSections) {
    const Json whole = ToJson(spec);
    for (const Key& key : SectionNamed(section.name).keys) {
      // The rest of its section needs such a key.
      if (key.name == "min_workers" || key.name == "pattern") continue;
      Json json = whole;
      json[section.name].erase(key.name);
      ASSERT_TRUE(SpecFromJson(json).ok()) << section.name << "." << key.name;
    }
  }
  Json json = ToJson(spec);
  for (const char* key : {"priority", "warm_start", "checkpoint"}) json.erase(key);
  const Result<SweepSpec> read = SpecFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->priority, 0);
  EXPECT_EQ(read->warm_start, std::vector<SweepId>{});
  EXPECT_EQ(read->checkpoint, CheckpointPolicy{});
}

TEST(Codec, LimitsOfTrialsReturn) {
  SweepSpec spec = FullSpec();
  spec.stop.thresholds = {
      {.metric = "recall", .at_least = 0.9},
      {.metric = "loss", .at_least = 5, .at_most = 0.1, .grace_period = Step(4)}};
  for (const Plateau& plateau :
       {Plateau{.metric = Maximise("recall"), .patience = 3, .min_delta = 0.1},
        Plateau{.metric = Minimise("loss"), .patience = 9, .std = 0.0, .grace_period = Step(7)}}) {
    spec.stop.plateau = plateau;
    const Result<SweepSpec> read = SpecFromJson(Reread(ToJson(spec)));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, spec);
  }
}

TEST(Codec, SeveralMetricsAndConstraintsReturn) {
  SweepSpec spec = FullSpec();
  spec.objectives = {Minimise("val_loss"), Maximise("images/s"), Minimise("watts")};
  spec.stop.targets = {std::nullopt, 100.5};
  spec.constraints = {{.metric = "latency_ms", .max = 20},
                      {.metric = "recall", .min = 0.5, .max = 1}};
  const Json json = ToJson(spec);
  EXPECT_FALSE(json.contains("metric"));
  EXPECT_EQ(json["metrics"][1].dump(), R"({"name":"images/s","mode":"max","target":100.5})");
  EXPECT_EQ(*SpecFromJson(Reread(json)), spec);
}

TEST(Codec, SweepsWithoutAProgramSayNothingOfOne) {
  const SweepSpec spec = Spec(
      "metric: {name: loss, mode: min, target: 0.1}\nparameters: {lr: {value: 1}}\n"
      "failure: {backoff: 1m}\nstop: {max_time: 1h}\n");
  const Json json = ToJson(spec);
  for (const char* key : {"command", "env", "working_directory", "resources", "checkpoint"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  EXPECT_EQ(*SpecFromJson(Reread(json)), spec);
  EXPECT_EQ(Spec(ResolvedYaml(spec)), spec);
}

TEST(Codec, JsonOfASpecIsASweepFile) {
  const SweepSpec spec = Spec(With("scheduler: {name: asha, max: 9}\nname: x\n"));
  EXPECT_EQ(Spec(ToJson(spec).dump()), spec);
  EXPECT_EQ(Spec(ToJson(spec).dump(2)), spec);
}

TEST(Codec, AlgorithmOptionsOfEveryTypeReturn) {
  SweepSpec spec = FullSpec();
  spec.searcher.options = {{"a", true}, {"b", 1.0}, {"c", int64_t{1}}, {"d", std::string("1.0")}};
  EXPECT_EQ(*SpecFromJson(Reread(ToJson(spec))), spec);
}

TEST(Codec, RealsAndIntegersStayApart) {
  EXPECT_EQ(ToJson(Value(1.0)).dump(), "1.0");
  EXPECT_EQ(ToJson(Value(int64_t{1})).dump(), "1");
  EXPECT_EQ(ToJson(Value(true)).dump(), "true");
  EXPECT_EQ(ToJson(Value("1")).dump(), "\"1\"");
  for (const Value& value :
       {Value(1.0), Value(int64_t{1}), Value(true), Value("1"), Value(1e300), Value(5e-324),
        Value(0.1 + 0.2), Value(std::nextafter(1.0, 2.0)), Value(9007199254740993.0), Value(1e22),
        Value(std::numeric_limits<int64_t>::min()), Value(std::numeric_limits<int64_t>::max()),
        Value(-1.7976931348623157e308)}) {
    const Result<Value> read = ValueFromJson(Reread(ToJson(value)));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, value) << FormatValue(value);
  }
}

TEST(Codec, MinusZeroKeepsItsSign) {
  const Result<Value> read = ValueFromJson(Reread(ToJson(Value(-0.0))));
  EXPECT_TRUE(std::signbit(std::get<double>(*read)));
}

TEST(Codec, MetricsThatJsonCannotCarryAreTexts) {
  const Metrics metrics{{"a", kNan}, {"b", kInf}, {"c", -kInf}, {"d", 1.0}};
  EXPECT_EQ(ToJson(metrics).dump(), R"({"a":"nan","b":"inf","c":"-inf","d":1.0})");
  const Result<Metrics> read = MetricsFromJson(Reread(ToJson(metrics)));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::isnan(read->at("a")));
  EXPECT_EQ(read->at("b"), kInf);
  EXPECT_EQ(read->at("c"), -kInf);
  EXPECT_EQ(*MetricsFromJson(Json{{"a", 3}}), (Metrics{{"a", 3.0}}));
  EXPECT_FALSE(MetricsFromJson(Json{{"a", "much"}}).ok());
}

TEST(Codec, ConfigurationsKeepTheirOrder) {
  const Config config{{"z", 0.1}, {"a", int64_t{3}}, {"m", std::string("nan")}};
  EXPECT_EQ(ToJson(config).dump(), R"({"z":0.1,"a":3,"m":"nan"})");
  EXPECT_EQ(*ConfigFromJson(Reread(ToJson(config))), config);
}

TEST(Codec, JsonThatHoldsNoSettingIsCorrupt) {
  for (const char* text :
       {"[1]", "{\"a\": null}", "{\"a\": [1]}", "{\"a\": 18446744073709551615}"}) {
    const Result<Config> read = ConfigFromJson(Json::parse(text));
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Codec, DamagedSpecsAreErrors) {
  const Json whole = ToJson(FullSpec());
  const Json scraps[] = {nullptr, 3, "text", Json::array({1}), Json::object(), -1, 1e300};
  int damaged = 0;
  const Json flat = whole.flatten();
  for (const auto& [key, member] : flat.items()) {
    for (const Json& scrap : scraps) {
      Json json = whole;
      json[Json::json_pointer(key)] = scrap;
      const Result<SweepSpec> read = SpecFromJson(json);  // must not crash
      damaged += read.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(damaged, 100);
  for (const char* key : {"metric", "parameters"}) {
    Json json = whole;
    json.erase(key);
    ASSERT_FALSE(SpecFromJson(json).ok()) << key;
    EXPECT_EQ(SpecFromJson(json).error().code, ErrorCode::kCorrupt);
  }
}

TEST(Codec, SpaceWithFaultsIsCorruptAndNoCrash) {
  Json json = ToJson(FullSpec());
  json["parameters"]["z"]["max"] = 0.5;
  const Result<SweepSpec> read = SpecFromJson(json);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("parameters.z.max: 0.5 "));
}

TEST(ResolvedYaml, ReadsBackAsTheSameSpec) {
  SweepSpec spec = FullSpec();
  spec.program.environment = {{"Z", "1"}, {"A", ""}, {"yes", "no"}};
  // All numbers of a choice have the same type in a file.
  std::vector<Parameter> parameters = spec.space.parameters();
  parameters[1].when[0].any_of = {Value("no"), Value("1")};
  parameters[2].domain =
      CategoricalDomain{{Value("no"), Value("1"), Value(true), Value("true"), Value(2.0)}};
  spec.space = SearchSpace(parameters);
  const SweepSpec read = Spec(ResolvedYaml(spec));
  EXPECT_EQ(ToJson(read).dump(1), ToJson(spec).dump(1));
  EXPECT_TRUE(read == spec);
}

TEST(Codec, ALabelWithOneValueIsWrittenAsATextAndWithSeveralAsAList) {
  const SweepSpec spec = FullSpec();
  EXPECT_EQ(ToJson(spec)["resources"]["requires"].dump(), R"({"gpu":["a100","h100"],"zone":"a"})");
  Json json = ToJson(spec);
  json["resources"]["requires"] = 7;
  EXPECT_FALSE(SpecFromJson(json).ok());
}

TEST(Codec, AShareOfAGpuComesBackAsItWas) {
  for (const int percent : {1, 7, 25, 29, 57, 99, 100}) {
    SweepSpec spec = Spec(With("resources: {gpus_per_worker: 1}\n"));
    spec.gang.gpu_percent = percent;
    const auto read = SpecFromJson(Json::parse(ToJson(spec).dump()));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->gang, spec.gang) << percent;
    EXPECT_EQ(Spec(ResolvedYaml(spec)).gang, spec.gang) << percent;
  }
}

TEST(ResolvedYaml, IsForPeople) {
  EXPECT_EQ(ResolvedYaml(Spec(With("env: {A: yes}\ninitial_points: [{lr: 1}]\n"))),
            "apiVersion: attune/v1\n"
            "kind: Sweep\n"
            "name: mnist\n"
            "tags: []\n"
            "command: [train]\n"
            "env:\n"
            "  A: \"yes\"\n"
            "secrets: []\n"
            "working_directory: /home/ada/mnist\n"
            "metric:\n"
            "  name: loss\n"
            "  mode: min\n"
            "constraints: {}\n"
            "parameters:\n"
            "  lr: {type: float, min: 0.1, max: 1.0, scale: linear}\n"
            "initial_points:\n"
            "  - {lr: 1.0}\n"
            "searcher:\n"
            "  name: auto\n"
            "  seed: 0\n"
            "warm_start: []\n"
            "scheduler:\n"
            "  name: fifo\n"
            "  max: 0\n"
            "resources:\n"
            "  workers: 1\n"
            "  cpus_per_worker: 1\n"
            "  gpus_per_worker: 0\n"
            "  memory_per_worker: \"0B\"\n"
            "  placement: pack\n"
            "  requires: {}\n"
            "max_concurrent_trials: 0\n"
            "priority: 0\n"
            "checkpoint:\n"
            "  every: 0\n"
            "  keep_last: 1\n"
            "  keep_best: 1\n"
            "failure:\n"
            "  max_restarts: 3\n"
            "  max_failed_trials: 10\n"
            "  backoff: \"10s\"\n"
            "  stall_timeout: \"10m\"\n"
            "  grace: \"5s\"\n"
            "  on_log: []\n"
            "stop:\n"
            "  max_trials: 4\n"
            "  max_time: \"0s\"\n"
            "  max_gpu_hours: 0.0\n"
            "  patience: 0\n"
            "  max_trial_time: \"0s\"\n"
            "  trial_patience: 0\n"
            "  threshold: {}\n");
}

}  // namespace
}  // namespace attune::sweepfile

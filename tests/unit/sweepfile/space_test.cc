#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The domain of a parameter `x` written as `text`.
Domain DomainOf(const std::string& text) {
  return Spec(WithParameters("  x: " + text + "\n")).space.Find("x")->domain;
}

TEST(Parameters, ReadIntegerBoundsAsIntegers) {
  EXPECT_EQ(DomainOf("{min: 2, max: 8}"), Domain(IntDomain{.min = 2, .max = 8}));
  EXPECT_EQ(DomainOf("{min: 64, max: 512, step: 64, scale: log}"),
            Domain(IntDomain{.min = 64, .max = 512, .scale = Scale::kLog, .step = 64}));
  EXPECT_EQ(DomainOf("{min: 0x10, max: +32}"), Domain(IntDomain{.min = 16, .max = 32}));
}

TEST(Parameters, ReadBoundsWithAPointOrExponentAsFloats) {
  EXPECT_EQ(DomainOf("{min: 0, max: 1.0}"), Domain(FloatDomain{.min = 0, .max = 1}));
  EXPECT_EQ(DomainOf("{min: 1e-5, max: 1e-3, scale: log}"),
            Domain(FloatDomain{.min = 1e-5, .max = 1e-3, .scale = Scale::kLog}));
  EXPECT_EQ(DomainOf("{min: 0, max: 1, step: 0.25}"),
            Domain(FloatDomain{.min = 0, .max = 1, .step = 0.25}));
  EXPECT_EQ(DomainOf("{min: .5, max: 5.}"), Domain(FloatDomain{.min = 0.5, .max = 5}));
}

TEST(Parameters, ConvertNumbersToTheGivenType) {
  EXPECT_EQ(DomainOf("{min: 1, max: 3, type: float}"), Domain(FloatDomain{.min = 1, .max = 3}));
  EXPECT_EQ(DomainOf("{min: 1e2, max: 1e3, type: int}"),
            Domain(IntDomain{.min = 100, .max = 1000}));
  EXPECT_EQ(DomainOf("{values: [1, 2], type: float}"),
            Domain(CategoricalDomain{{Value(1.0), Value(2.0)}}));
  EXPECT_EQ(DomainOf("{value: 1, type: float}"), Domain(ConstantDomain{1.0}));
  EXPECT_THAT(FaultsOf(WithParameters("  x: {min: 0.5, max: 3, type: int}\n")),
              HasSubstr("sweep.yaml:5:12: parameters.x.min: "));
}

TEST(Parameters, ValuesKeepTheirTypes) {
  EXPECT_EQ(DomainOf("{values: [no, yes, on, 1, \"1\", true, 1e3x]}"),
            Domain(CategoricalDomain{{Value("no"), Value("yes"), Value("on"), Value(int64_t{1}),
                                      Value("1"), Value(true), Value("1e3x")}}));
  EXPECT_EQ(DomainOf("{value: 1e-3}"), Domain(ConstantDomain{0.001}));
  EXPECT_EQ(DomainOf("{value: 256}"), Domain(ConstantDomain{int64_t{256}}));
  EXPECT_EQ(DomainOf("{value: \"\"}"), Domain(ConstantDomain{std::string()}));
}

TEST(Parameters, ConvertAllNumbersIfOneIsAFloat) {
  EXPECT_EQ(DomainOf("{values: [0, 0.5]}"), Domain(CategoricalDomain{{Value(0.0), Value(0.5)}}));
}

TEST(Parameters, LocateFaultsAtTheirKeys) {
  ExpectGolden("sweepfile/parameters",
               ExpectFaults(
                   {
                       {"{min: 0.1, max: 0.001}", "5:22: parameters.x.max: "},
                       {"{min: 0, max: 1.0, scale: log}", "5:12: parameters.x.min: "},
                       {"{min: -1, max: 8, scale: log}", "5:12: parameters.x.min: "},
                       {"{min: 1, max: 8, step: 0}", "5:29: parameters.x.step: "},
                       {"{min: .nan, max: 1}", "5:12: parameters.x.min: "},
                       {"{min: 0, max: .inf}", "5:20: parameters.x.max: "},
                       {"{min: 0, max: 1e999}", "parameters.x.max: "},
                       {"{min: 0, max: 9007199254740992}", "parameters.x.max: "},
                       {"{values: [1, 9007199254740993]}", "parameters.x.values[1]: "},
                       {"{value: -9007199254740992}", "parameters.x.value: "},
                       {"{min: \"nan\", max: 1}", "parameters.x.min: "},
                       {"{min: -Infinity, max: 1}", "parameters.x.min: "},
                       {"{min: \"1e999\", max: 1}", "parameters.x.min: "},
                       {"{lr: {min: 0.1, max: 1.0}, width: {value: 3}}", "5:3: parameters.x: "},
                       {"{values: [null, a]}", "parameters.x.values[0]: "},
                       {"{values: [[1, 2], [3]]}", "parameters.x.values[0]: "},
                       {"{min: \"1e-3\", max: 1}", "parameters.x.min: "},
                       {"{min: low, max: 1}", "parameters.x.min: "},
                       {"{min: \"low\", max: 1}", "parameters.x.min: "},
                       {"{min: 0.5}", "5:3: parameters.x.max: "},
                       {"{}", "5:3: parameters.x: "},
                       {"{min: 1, max: 2, values: [1]}", "parameters.x: "},
                       {"{values: [1, 2], step: 1}", "5:23: parameters.x.step: "},
                       {"{values: [1, 2], scale: log}", "parameters.x.scale: "},
                       {"{values: []}", "parameters.x.values: "},
                       {"{values: [a, a]}", "parameters.x.values: "},
                       {"{values: 3}", "parameters.x.values: "},
                       {"{values: [.nan]}", "parameters.x.values[0]: "},
                       {"{values: [[a]]}", "parameters.x.values[0]: "},
                       {"{value: {a: 1}}", "parameters.x.value: "},
                       {"{value: }", "parameters.x.value: "},
                       {"{value: 1, type: number}", "parameters.x.type: "},
                       {"{min: 1, max: 2, distribution: log}", "parameters.x.distribution: "},
                       {"{min: 1, max: 2, mx: 2}", "parameters.x.mx: "},
                       {"256", "parameters.x: "},
                       {"[1, 2]", "parameters.x: "},
                   },
                   [](const std::string& text) { return WithParameters("  x: " + text + "\n"); }));
}

TEST(Parameters, MustBeAMap) {
  for (const char* text : {"parameters:", "parameters: [a]"}) {
    const std::string file =
        "command: [a]\nmetric: {name: a, mode: min}\nstop: {max_trials: 1}\n" + std::string(text);
    EXPECT_THAT(FaultsOf(file), HasSubstr("sweep.yaml:4:1: parameters: ")) << text;
  }
  const SweepSpec spec =
      Spec("command: [a]\nmetric: {name: a, mode: min}\nstop: {max_trials: 1}\nparameters: {}\n");
  EXPECT_TRUE(spec.space.parameters().empty());
}

TEST(Parameters, RequireNamesThatFitOnACommandLine) {
  for (const char* name : {"lr", "_x", "optimizer.lr", "a-b_9"}) {
    Spec(WithParameters("  " + std::string(name) + ": {value: 1}\n"));
  }
  for (const char* name : {"9a", "'a b'", "a=b", "'a}'", "''", "ä"}) {
    EXPECT_THAT(FaultsOf(WithParameters("  " + std::string(name) + ": {value: 1}\n")),
                HasSubstr("sweep.yaml:5:3: parameters."))
        << name;
  }
}

TEST(Parameters, AreLimitedInNumber) {
  std::string lines;
  for (size_t i = 0; i < kMaxParameters; ++i) lines += "  p" + std::to_string(i) + ": {value: 1}\n";
  EXPECT_EQ(Spec(WithParameters(lines)).space.parameters().size(), kMaxParameters);
  EXPECT_THAT(FaultsOf(WithParameters(lines + "  q: {value: 1}\n")),
              AllOf(HasSubstr(" parameters: "), HasSubstr(" 1000 ")));
}

TEST(Parameters, LimitListedValues) {
  std::string values = "0";
  for (size_t i = 1; i < kMaxListedValues; ++i) values += ", " + std::to_string(i);
  Spec(WithParameters("  x: {values: [" + values + "]}\n"));
  EXPECT_THAT(FaultsOf(WithParameters("  x: {values: [" + values + ", z]}\n")),
              AllOf(HasSubstr("parameters.x.values: "), HasSubstr(" 1000 ")));
}

TEST(When, HasThreeForms) {
  const SweepSpec spec = Spec(
      WithParameters("  momentum: {min: 0.5, max: 0.9, when: {optimizer: sgd}}\n"
                     "  warmup: {min: 0, max: 5, when: {optimizer: [sgd, adamw], layers: {gte: 4, "
                     "lte: 6}}}\n"
                     "  optimizer: {values: [sgd, adamw]}\n"
                     "  layers: {min: 2, max: 8}\n"));
  EXPECT_THAT(spec.space.Find("momentum")->when,
              ElementsAre(Condition{.parent = "optimizer", .any_of = {Value("sgd")}}));
  EXPECT_THAT(
      spec.space.Find("warmup")->when,
      ElementsAre(Condition{.parent = "optimizer", .any_of = {Value("sgd"), Value("adamw")}},
                  Condition{.parent = "layers", .at_least = 4, .at_most = 6}));
}

TEST(When, ReadsValuesAsTheParentDoes) {
  const SweepSpec spec =
      Spec(WithParameters("  f: {min: 0, max: 4, step: 1, type: float}\n"
                          "  t: {values: [\"1\", \"2\"]}\n"
                          "  a: {value: 1, when: {f: 2, t: 1}}\n"));
  EXPECT_THAT(spec.space.Find("a")->when,
              ElementsAre(Condition{.parent = "f", .any_of = {Value(2.0)}},
                          Condition{.parent = "t", .any_of = {Value("1")}}));
}

TEST(When, PrefersAValueOfTheWrittenType) {
  const SweepSpec spec =
      Spec(WithParameters("  t: {values: [\"true\", true]}\n  a: {value: 1, when: {t: true}}\n"));
  EXPECT_THAT(spec.space.Find("a")->when,
              ElementsAre(Condition{.parent = "t", .any_of = {Value(true)}}));
}

TEST(When, LocatesFaults) {
  ExpectGolden(
      "sweepfile/when",
      ExpectFaults(
          {
              {"{optimiser: sgd}", "6:24: parameters.a.when.optimiser: "},
              {"{optimizer: lion}", "6:17: parameters.a.when: "},
              {"{optimizer: []}", "parameters.a.when.optimizer: "},
              {"{optimizer: {}}", "parameters.a.when.optimizer: "},
              {"{optimizer: {gt: 3}}", "parameters.a.when.optimizer.gt: "},
              {"{optimizer: {gte: x}}", "parameters.a.when.optimizer.gte: "},
              {"{optimizer: }", "parameters.a.when.optimizer: "},
              {"{a: 1}", "parameters.a.when: "},
              {"sgd", "parameters.a.when: "},
          },
          [](const std::string& text) {
            return WithParameters(
                "  optimizer: {values: [sgd, adamw]}\n  a: {value: 1, when: " + text + "}\n");
          }));
}

TEST(InitialPoints, AreCompletedAndTyped) {
  const SweepSpec spec =
      Spec(WithParameters("  lr: {min: 0.1, max: 2.0}\n  o: {values: [a, \"1\"]}\n  b: {value: 3}\n"
                          "initial_points: [{o: 1, lr: 1}]\n"));
  EXPECT_THAT(spec.initial_points,
              ElementsAre(Config{{"lr", 1.0}, {"o", std::string("1")}, {"b", int64_t{3}}}));
}

TEST(InitialPoints, DrawMissingValues) {
  const std::string file = WithParameters(
      "  lr: {min: 0.1, max: 2.0}\n  n: {min: 1, max: 1000}\n"
      "  m: {min: 1, max: 9, when: {n: 7}}\n"
      "initial_points: [{lr: 1}, {lr: 1}, {n: 7}, {}]\n");
  const SweepSpec spec = Spec(file);
  ASSERT_EQ(spec.initial_points.size(), 4u);
  for (const Config& point : spec.initial_points) EXPECT_TRUE(spec.space.Resolve(point).ok());
  EXPECT_EQ(*spec.initial_points[0].Find("lr"), Value(1.0));
  EXPECT_NE(*spec.initial_points[0].Find("n"), *spec.initial_points[1].Find("n"));
  EXPECT_NE(spec.initial_points[2].Find("m"), nullptr);
  EXPECT_EQ(Spec(file), spec) << "the same for the same seed";
}

TEST(InitialPoints, LocateFaults) {
  ExpectGolden("sweepfile/initial_points",
               ExpectFaults(
                   {
                       {"{lr: 3, n: 1}", "8:23: initial_points[0].lr: "},
                       {"{lr: 0.5, m: 4}", "8:31: initial_points[0].m: "},
                       {"{lr: 0.5, n: 1.5}", "initial_points[0].n: "},
                       {"{lr: '0.5', n: 1}", "initial_points[0].lr: "},
                       {"{lr: 0.5, n: 1, m: 4}", "initial_points[0].m: "},
                       {"{lr: 0.5, nn: 1}", "8:28: initial_points[0].nn: "},
                       {"{lr: , n: 1}", "initial_points[0].lr: "},
                   },
                   [](const std::string& point) {
                     return WithParameters(
                                "  lr: {min: 0.1, max: 1.0}\n  n: {min: 1, max: 3}\n  m: {min: 1, "
                                "max: 9, when: {n: 2}}\n") +
                            "initial_points: [" + point + "]\n";
                   }));
}

}  // namespace
}  // namespace attune::sweepfile

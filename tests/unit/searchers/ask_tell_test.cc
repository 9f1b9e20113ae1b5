#include "searchers/ask_tell.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "searchers/register.h"
#include "tests/support/golden.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

using ::testing::HasSubstr;

std::string FaultsOf(std::vector<Parameter> parameters, AskTell::Options options) {
  const auto made = AskTell::Make(std::move(parameters), std::move(options));
  return made.ok() ? "" : made.error().message;
}

std::vector<std::string> Names() {
  Algorithms algorithms;
  RegisterSearchers(algorithms);
  std::vector<std::string> names;
  for (const auto& entry : algorithms.searchers()) names.push_back(entry.name);
  return names;
}

// A plane with steps, a list, and a parameter that depends on the list; also for grids.
std::vector<Parameter> MixedParameters() {
  return {{"x", FloatDomain{.min = -5, .max = 5, .step = 0.5}},
          {"y", FloatDomain{.min = -5, .max = 5, .step = 0.5}},
          {"kind", CategoricalDomain{{true, false}}},
          {"n", IntDomain{.min = 1, .max = 8, .scale = Scale::kLog}, {{"kind", {true}}}}};
}

TEST(AskTell, FindsGoodConfigurationsAndKeepsTheBest) {
  AskTell tuner = AskTell::Make(Plane(), {.searcher = "tpe", .seed = 7}).value();
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 60; ++i) {
    const auto trial = tuner.Ask();
    ASSERT_TRUE(trial);
    EXPECT_FALSE(trial->rationale.text.empty());
    lowest = std::min(lowest, Bowl(trial->config));
    ASSERT_TRUE(tuner.Tell(trial->number, Bowl(trial->config)).ok());
  }
  EXPECT_LT(lowest, 1);
  ASSERT_EQ(tuner.best().size(), 1u);
  EXPECT_EQ(tuner.best()[0].values, (std::vector<double>{lowest}));
  EXPECT_EQ(Bowl(tuner.best()[0].config), lowest);
}

TEST(AskTell, ContinuesFromASaveWithTheSameTrials) {
  for (const std::string& searcher : Names()) {
    for (const bool several : {false, true}) {
      AskTell::Options options{.searcher = searcher};
      if (several) options.objectives.push_back(Maximise("speed"));
      auto made = AskTell::Make(MixedParameters(), options);
      if (several && !made.ok()) continue;  // the searcher supports one metric
      ASSERT_TRUE(made.ok()) << made.error().message;
      AskTell& tuner = *made;
      for (int i = 0; i < 30; ++i) {
        const auto trial = tuner.Ask();
        if (i % 7 == 3) continue;
        const double loss = i % 7 == 5 ? std::nan("") : Bowl(trial->config);
        ASSERT_TRUE(tuner.Tell(trial->number, {{"loss", loss}, {"speed", i % 4}}).ok());
      }
      AskTell again = AskTell::Make(MixedParameters(), options).value();
      ASSERT_TRUE(again.Load(tuner.Save()).ok());
      EXPECT_EQ(again.Save(), tuner.Save());
      EXPECT_EQ(again.best().size(), tuner.best().size());
      EXPECT_EQ(again.best()[0].config, tuner.best()[0].config);
      for (AskTell* each : {&again, &tuner})
        EXPECT_TRUE(each->Tell(3, {{"loss", 0.5}, {"speed", 9}}).ok()) << "it was out then";
      for (int i = 0; i < 3; ++i) {
        const auto expected = tuner.Ask();
        const auto found = again.Ask();
        ASSERT_TRUE(expected && found);
        EXPECT_EQ(found->config, expected->config) << searcher;
        EXPECT_EQ(found->rationale, expected->rationale) << searcher;
      }
    }
  }
}

TEST(AskTell, RefusesBytesOfAnotherSearchAndKeepsItsState) {
  AskTell tuner = AskTell::Make(Plane(), {.searcher = "tpe"}).value();
  const auto first = tuner.Ask();
  const std::string before = tuner.Save();
  const AskTell other = AskTell::Make(Plane(), {.searcher = "cmaes"}).value();
  const std::string cut = before.substr(0, before.size() / 2);
  for (const std::string& bytes : {other.Save(), cut, before + "x", std::string()}) {
    const Status loaded = tuner.Load(bytes);
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, HasSubstr("tpe"));
    EXPECT_EQ(tuner.Save(), before);
  }
}

TEST(AskTell, ReturnsTheFrontOfSeveralObjectives) {
  AskTell tuner = AskTell::Make(Plane(), {.searcher = "nsga2",
                                          .objectives = {Minimise("loss"), Maximise("speed")},
                                          .constraints = {{.metric = "memory", .max = 8}}})
                      .value();
  const auto tell = [&](double loss, double speed, double memory) {
    EXPECT_TRUE(
        tuner.Tell(tuner.Ask()->number, {{"loss", loss}, {"speed", speed}, {"memory", memory}})
            .ok());
  };
  tell(0.5, 10, 4);
  tell(0.6, 9, 4);  // worse in both
  tell(0.9, 30, 4);
  tell(0.1, 90, 9);  // too large
  std::vector<uint32_t> front;
  for (const auto& best : tuner.best()) front.push_back(best.trial);
  EXPECT_EQ(front, (std::vector<uint32_t>{0, 2}));
}

TEST(AskTell, GivesAReasonWhenAFiniteSpaceIsExhausted) {
  AskTell tuner =
      AskTell::Make({{"a", IntDomain{.min = 1, .max = 3}}}, {.searcher = "grid"}).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(tuner.Ask());
  EXPECT_FALSE(tuner.Ask());
  EXPECT_THAT(tuner.reason(), HasSubstr("grid"));
}

TEST(AskTell, LearnsFromAnAddedTrial) {
  AskTell tuner = AskTell::Make(Plane(), {}).value();
  const auto own = tuner.Add({{"x", int64_t{2}}, {"y", -1.0}});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->config, (Config{{"x", 2.0}, {"y", -1.0}}));
  ASSERT_TRUE(tuner.Tell(own->number, 0).ok());
  EXPECT_EQ(tuner.best()[0].trial, own->number);
  const auto wrong = tuner.Add({{"x", 20.0}, {"y", 0.0}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("x"));
}

TEST(AskTell, RefusesBytesOfOtherObjectivesOrWithAFlippedBit) {
  AskTell tuner = AskTell::Make(Plane(), {}).value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(tuner.Tell(tuner.Ask()->number, i % 7).ok());
  const std::string bytes = tuner.Save();
  AskTell other = AskTell::Make(Plane(), {.objectives = {Maximise("accuracy")}}).value();
  EXPECT_EQ(other.Load(bytes).error().code, ErrorCode::kCorrupt);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 4);
    AskTell fresh = AskTell::Make(Plane(), {}).value();
    ASSERT_FALSE(fresh.Load(flipped).ok()) << i;
    ASSERT_FALSE(fresh.Load(bytes.substr(0, i)).ok()) << i;
  }
}

TEST(AskTell, AcceptsOneResultPerTrial) {
  AskTell tuner = AskTell::Make(Plane(), {}).value();
  const uint32_t number = tuner.Ask()->number;
  EXPECT_TRUE(tuner.Tell(number, 1).ok());
  EXPECT_EQ(tuner.Tell(number, 2).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tuner.Tell(9, 2).error().code, ErrorCode::kNotFound);
  testing::ExpectGolden("searchers/ask_tell", tuner.Tell(number, 2).error().message + "\n" +
                                                  tuner.Tell(9, 2).error().message + "\n");
}

TEST(AskTell, NamesEveryFault) {
  EXPECT_THAT(FaultsOf({{"lr", FloatDomain{.min = 2, .max = 1}}},
                       {.searcher = "tpe", .options = {{"candidate", int64_t{24}}}}),
              ::testing::AllOf(HasSubstr("parameters.lr"), HasSubstr("options.candidate: ")));
  EXPECT_THAT(FaultsOf(Plane(), {.searcher = "bayes"}),
              ::testing::AllOf(HasSubstr("searcher: "), HasSubstr("auto, random, ")));
  EXPECT_EQ(FaultsOf(Plane(), {.options = {{"good_fraction", 7.0}}}).substr(0, 21),
            "options.good_fraction");
  EXPECT_THAT(FaultsOf(Plane(), {.options = {{"startup_trials", 2.5}}}),
              ::testing::AllOf(HasSubstr("float"), HasSubstr("int")));
  EXPECT_THAT(FaultsOf(Plane(), {.objectives = {}}), HasSubstr("objectives: none"));
  EXPECT_THAT(
      FaultsOf(Plane(), {.searcher = "cmaes", .objectives = {Minimise("a"), Minimise("b")}}),
      HasSubstr("searcher.name: cmaes"));
  EXPECT_THAT(FaultsOf(Plane(), {.searcher = "grid"}), HasSubstr("parameters."));
}

}  // namespace
}  // namespace attune::searchers

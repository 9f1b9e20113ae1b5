#include "core/log/labels.h"

#include "core/state/origin.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

TEST(Labels, MatchIfEveryNameHasOneOfItsValues) {
  const Requirements required = {{"gpu", {"a100", "h100"}}, {"zone", {"a"}}};
  EXPECT_TRUE(Matches(required, {{"gpu", "h100"}, {"zone", "a"}, {"more", "x"}}));
  EXPECT_FALSE(Matches(required, {{"gpu", "h100"}}));
  EXPECT_FALSE(Matches(required, {{"gpu", "v100"}, {"zone", "a"}}));
  EXPECT_TRUE(Matches({}, {}));
  EXPECT_EQ(ToString(required), "gpu=a100 or h100, zone=a");
}

TEST(Labels, NamesAndValuesAreWords) {
  EXPECT_TRUE(CheckLabels({{"nvidia.com/gpu", "H100-80GB_SXM"}}).ok());
  EXPECT_FALSE(CheckLabelName("").ok());
  EXPECT_FALSE(CheckLabelValue("a b").ok());
  EXPECT_TRUE(CheckLabelValue(std::string(kMaxLabelBytes, 'x')).ok());
  EXPECT_FALSE(CheckLabelValue(std::string(kMaxLabelBytes + 1, 'x')).ok());
  Labels many;
  for (size_t i = 0; i < kMaxLabels; ++i) many["n" + std::to_string(i)] = "v";
  EXPECT_TRUE(CheckLabels(many).ok());
  many["more"] = "v";
  EXPECT_FALSE(CheckLabels(many).ok());
}

class LabelledGangs : public BrainTest {
 protected:
  void JoinLabelled(const std::string& name, int cpus, Labels labels,
                    const std::string& instance = "a") {
    Do(JoinExecutor{.name = name,
                    .instance = instance,
                    .resources = {.cpus = cpus},
                    .labels = std::move(labels)});
  }
  static SweepSpec Requiring(Requirements required, int workers = 1, int max_trials = 1) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = workers, .per_worker = {.cpus = 1}, .required = std::move(required)};
    spec.stop.max_trials = max_trials;
    return spec;
  }
};

TEST_F(LabelledGangs, AGangStartsOnlyOnExecutorsWithItsLabels) {
  JoinLabelled("old", 4, {{"gpu", "a100"}});
  JoinLabelled("new", 4, {{"gpu", "h100"}});
  Create(Requiring({{"gpu", {"h100"}}}, 4));
  EXPECT_EQ(trial(0).live->ranks[0].executor, "new");
}

TEST_F(LabelledGangs, AMissingLabelIsNamedWithTheExistingOnes) {
  JoinLabelled("old", 4, {{"gpu", "a100"}, {"zone", "a"}});
  Create(Requiring({{"gpu", {"h100"}}}));
  EXPECT_THAT(brain.Waiting(sweep()), testing::Mentions("gpu=h100", "gpu=a100, zone=a"));
  JoinLabelled("new", 1, {{"gpu", "h100"}});
  EXPECT_EQ(trial(0).live->ranks[0].executor, "new");
}

TEST_F(LabelledGangs, OnlyExecutorsWithTheLabelsAreListedAsFull) {
  JoinLabelled("new", 1, {{"gpu", "h100"}});
  Create(Requiring({{"gpu", {"h100"}}}));
  Create(Requiring({{"gpu", {"h100"}}}));
  const std::string reason = brain.Waiting(sweep());
  EXPECT_THAT(reason, testing::Mentions("1 CPU", "gpu=h100", "new", "0"));
  EXPECT_THAT(reason, ::testing::Not(::testing::HasSubstr("box")));
}

TEST_F(LabelledGangs, AGangWithoutLabelsIsNotBlockedByAGangWithLabels) {
  JoinLabelled("new", 1, {{"gpu", "h100"}});
  Create(Requiring({{"gpu", {"h100"}}}, 1, 3));
  Create(Requiring({}));
  EXPECT_EQ(trial(0).live->ranks[0].executor, "box");
}

TEST_F(LabelledGangs, SlotsAreReservedOnlyOnExecutorsWithTheLabels) {
  JoinLabelled("x", 8, {});
  JoinLabelled("y", 4, {{"gpu", "h100"}});
  SweepSpec small = testing::ToySpec();
  small.stop.max_trials = 0;
  const SweepId first = Create(small);
  const SweepId large = Create(Requiring({{"gpu", {"h100"}}}, 4));
  for (const TrialNumber number : std::set(sweep(first).live)) {
    const Attempt live = *sweep(first).Find(number)->live;
    if (live.ranks[0].executor != "y") continue;
    Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}});
    break;
  }
  ASSERT_TRUE(brain.state().reservation);
  EXPECT_EQ(brain.state().reservation->sweep, large);
  EXPECT_TRUE(brain.state().reservation->workers.contains("y"));

  JoinLabelled("y", 4, {{"gpu", "a100"}}, "relabelled");
  EXPECT_FALSE(brain.state().reservation) << "its gang can no longer start there";
}

TEST_F(LabelledGangs, ACheckpointIsFetchedFromAnExecutorThatLostItsLabel) {
  Do(JoinExecutor{.name = "own",
                  .instance = "a",
                  .resources = {.cpus = 4},
                  .folder = "of own",
                  .labels = {{"gpu", "h100"}}});
  Create(Requiring({{"gpu", {"h100"}}}, 4));
  SaveAndReport(0, 1);
  Do(JoinExecutor{.name = "own", .instance = "b", .resources = {.cpus = 4}, .folder = "of own"});
  EXPECT_FALSE(trial(0).live);
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("gpu=h100", "none"));
  Do(JoinExecutor{.name = "new",
                  .instance = "c",
                  .resources = {.cpus = 4},
                  .folder = "of new",
                  .labels = {{"gpu", "h100"}}});
  ASSERT_TRUE(trial(0).live);
  EXPECT_EQ(CheckpointToFetch(brain.state(), trial(0)), (CheckpointId{trial(0).id, 1, Step(1)}));
}

TEST_F(LabelledGangs, WrongLabelsAreRefused) {
  const Error error = RefusalOf(JoinExecutor{
      .name = "bad", .instance = "a", .resources = {.cpus = 1}, .labels = {{"a b", "c"}}});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, testing::Mentions("a b"));
}

}  // namespace
}  // namespace attune

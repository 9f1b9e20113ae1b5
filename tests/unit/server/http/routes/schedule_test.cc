#include "server/http/routes/trials/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace attune::server {
namespace {

Config Lr(double lr) { return {{"lr", lr}}; }
TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }

// Feeds events of trials to Lineages.
class Story {
 public:
  Story& Create(uint32_t trial, double lr) {
    return Add(TrialCreated{.trial = Id(trial), .config = Lr(lr)});
  }
  Story& Assign(uint32_t trial, uint32_t attempt, int64_t from, size_t workers = 1) {
    AttemptAssigned fact{.attempt = {Id(trial), attempt}, .ranks = std::vector<RankSlot>(workers)};
    if (from > 0)
      fact.resume =
          CheckpointRef{.step = Step(from),
                        .path = "/data/sweeps/s1/trials/" + std::to_string(trial) +
                                "/checkpoints/step-" + std::to_string(from) + "-attempt-1"};
    return Add(std::move(fact));
  }
  // The trial takes over the donor's checkpoint at its current step.
  Story& Clone(uint32_t trial, uint32_t donor, uint32_t attempt, int64_t step, double lr) {
    return Add(
        TrialDecided{.attempt = {Id(trial), 1},
                     .verdict = Verdict::Exploit({Id(donor), attempt, Step(step)}, Lr(lr), {})});
  }
  Story& Promote(uint32_t trial, double lr) {
    return Add(TrialPromoted{.trial = Id(trial), .config = Lr(lr)});
  }

  const Lineages& lineages() const { return lineages_; }

  // A lineage as text: 0: lr 0.1 by 2; 4: …
  std::string LineageOf(uint32_t trial) const {
    std::string text;
    for (const auto& [step, part] : lineages_.LineageOf(TrialNumber(trial)))
      text += (text.empty() ? "" : "; ") + std::to_string(step.value) + ": " +
              FormatValue(*part.config.Find("lr")) + " by " + std::to_string(part.trial.value);
    return text;
  }

 private:
  Story& Add(Fact fact) {
    lineages_.Observe({.fact = std::move(fact)});
    return *this;
  }
  Lineages lineages_;
};

TEST(Lineages, OfATrialWithoutClonesHasOnlyItsConfiguration) {
  EXPECT_EQ(Story().Create(0, 0.5).Assign(0, 1, 0).Assign(0, 2, 3).LineageOf(0), "0: 0.5 by 0");
}

TEST(Lineages, OfACloneIncludesItsDonors) {
  Story story;
  story.Create(0, 0.1).Create(1, 0.2).Create(2, 0.3);
  for (uint32_t trial : {0, 1, 2}) story.Assign(trial, 1, 0);
  story.Clone(1, 0, 1, 4, 0.12).Assign(1, 2, 4);
  story.Clone(2, 1, 2, 8, 0.14).Assign(2, 2, 8);
  EXPECT_EQ(story.LineageOf(2), "0: 0.1 by 0; 4: 0.12 by 1; 8: 0.14 by 2");
  EXPECT_EQ(story.LineageOf(0), "0: 0.1 by 0");
}

// The donor clones another trial before its own clone starts. The checkpoint of the clone is older
// than that.
TEST(Lineages, UsesTheDonorsLineageAtItsCheckpoint) {
  Story story;
  story.Create(0, 0.1).Create(1, 0.2).Create(2, 0.3);
  for (uint32_t trial : {0, 1, 2}) story.Assign(trial, 1, 0);
  story.Clone(0, 2, 1, 4, 0.33).Assign(0, 2, 4);
  story.Clone(1, 0, 1, 4, 0.12).Assign(1, 2, 4);
  EXPECT_EQ(story.LineageOf(0), "0: 0.3 by 2; 4: 0.33 by 0");
  EXPECT_EQ(story.LineageOf(1), "0: 0.1 by 0; 4: 0.12 by 1");
}

TEST(Lineages, ReplacesStepsThatAreTrainedAgain) {
  Story story;
  story.Create(0, 0.1).Assign(0, 1, 0).Promote(0, 0.2).Assign(0, 2, 4);
  EXPECT_EQ(story.LineageOf(0), "0: 0.1 by 0; 4: 0.2 by 0");
  EXPECT_EQ(story.Assign(0, 3, 6).LineageOf(0), "0: 0.1 by 0; 4: 0.2 by 0");
  EXPECT_EQ(story.Assign(0, 4, 2).LineageOf(0), "0: 0.1 by 0; 2: 0.2 by 0");
  EXPECT_EQ(story.Assign(0, 5, 0).LineageOf(0), "0: 0.2 by 0");
}

TEST(Lineages, APartBeginsIfTheGangChangesItsSize) {
  Story story;
  story.Create(0, 0.1).Assign(0, 1, 0, 4).Assign(0, 2, 3, 4).Assign(0, 3, 5, 2);
  const Lineages::Lineage lineage = story.lineages().LineageOf(TrialNumber(0));
  ASSERT_EQ(lineage.size(), 2u);
  const Lineages::Part& first = lineage.at(Step(0));
  EXPECT_EQ(first.attempt, 1u);
  EXPECT_EQ(first.workers, 4);
  EXPECT_FALSE(first.checkpoint);
  const Lineages::Part& second = lineage.at(Step(5));
  EXPECT_EQ(second.attempt, 3u);
  EXPECT_EQ(second.workers, 2);
  EXPECT_EQ(ToString(*second.checkpoint), "s1/0/1-5");
}

}  // namespace
}  // namespace attune::server

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
  Story& Created(uint32_t trial, double lr) {
    return Add(TrialCreated{.trial = Id(trial), .config = Lr(lr)});
  }
  Story& Assigned(uint32_t trial, uint32_t attempt, int64_t from) {
    AttemptAssigned fact{.attempt = {Id(trial), attempt}};
    if (from > 0) fact.resume = CheckpointRef{.step = Step(from)};
    return Add(std::move(fact));
  }
  // The trial takes over the donor's checkpoint at its present step.
  Story& Clones(uint32_t trial, uint32_t donor, uint32_t attempt, int64_t step, double lr) {
    return Add(
        TrialDecided{.attempt = {Id(trial), 1},
                     .verdict = Verdict::Exploit({Id(donor), attempt, Step(step)}, Lr(lr), {})});
  }
  Story& Promoted(uint32_t trial, double lr) {
    return Add(TrialPromoted{.trial = Id(trial), .config = Lr(lr)});
  }

  // A lineage as text: 0: lr 0.1 by 2; 4: …
  std::string Of(uint32_t trial) const {
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
  EXPECT_EQ(Story().Created(0, 0.5).Assigned(0, 1, 0).Assigned(0, 2, 3).Of(0), "0: 0.5 by 0");
}

TEST(Lineages, OfACloneIncludesItsDonors) {
  Story story;
  story.Created(0, 0.1).Created(1, 0.2).Created(2, 0.3);
  for (uint32_t trial : {0, 1, 2}) story.Assigned(trial, 1, 0);
  story.Clones(1, 0, 1, 4, 0.12).Assigned(1, 2, 4);
  story.Clones(2, 1, 2, 8, 0.14).Assigned(2, 2, 8);
  EXPECT_EQ(story.Of(2), "0: 0.1 by 0; 4: 0.12 by 1; 8: 0.14 by 2");
  EXPECT_EQ(story.Of(0), "0: 0.1 by 0");
}

// The donor clones another trial before its own clone starts. The checkpoint of the clone is older
// than that.
TEST(Lineages, UsesTheDonorsLineageAtItsCheckpoint) {
  Story story;
  story.Created(0, 0.1).Created(1, 0.2).Created(2, 0.3);
  for (uint32_t trial : {0, 1, 2}) story.Assigned(trial, 1, 0);
  story.Clones(0, 2, 1, 4, 0.33).Assigned(0, 2, 4);
  story.Clones(1, 0, 1, 4, 0.12).Assigned(1, 2, 4);
  EXPECT_EQ(story.Of(0), "0: 0.3 by 2; 4: 0.33 by 0");
  EXPECT_EQ(story.Of(1), "0: 0.1 by 0; 4: 0.12 by 1");
}

TEST(Lineages, ReplacesStepsThatAreTrainedAgain) {
  Story story;
  story.Created(0, 0.1).Assigned(0, 1, 0).Promoted(0, 0.2).Assigned(0, 2, 4);
  EXPECT_EQ(story.Of(0), "0: 0.1 by 0; 4: 0.2 by 0");
  EXPECT_EQ(story.Assigned(0, 3, 6).Of(0), "0: 0.1 by 0; 4: 0.2 by 0");
  EXPECT_EQ(story.Assigned(0, 4, 2).Of(0), "0: 0.1 by 0; 2: 0.2 by 0");
  EXPECT_EQ(story.Assigned(0, 5, 0).Of(0), "0: 0.2 by 0");
}

}  // namespace
}  // namespace attune::server

#include "tests/unit/core/brain_harness.h"

// Tests for the actors of events.
namespace attune {
namespace {

using ::testing::Each;
using ::testing::Field;

class Actors : public BrainTest {
 protected:
  std::vector<Event> DoAs(const std::string& actor, const Command& command) {
    auto events = brain.Execute(command, Tick(), actor);
    EXPECT_TRUE(events.ok()) << events.error().message;
    return *events;
  }
  static std::string ActorOf(const std::vector<Event>& events, auto kind) {
    for (const Event& event : events) {
      if (std::holds_alternative<decltype(kind)>(event.fact)) return event.actor;
    }
    return "nobody";
  }
};

TEST_F(Actors, ConsequencesOfAUsersCommandBelongToThatUser) {
  Create(testing::ToySpec());
  EXPECT_THAT(DoAs("ada", KillSweep{id()}), Each(Field(&Event::actor, "ada")));
}

TEST_F(Actors, EventsWithoutACommandBelongToTheService) {
  DoAs("ada", CreateSweep{.spec = testing::ToySpec()});
  const auto events = brain.Advance(Tick());
  EXPECT_FALSE(events.empty());
  EXPECT_THAT(events, Each(Field(&Event::actor, kService)));
}

TEST_F(Actors, AReportBelongsToItsExecutorAndTheVerdictToTheService) {
  SweepSpec spec = testing::ToySpec();
  spec.max_step = Step(1);
  Create(spec);
  const Attempt live = *trial(0).live;
  const auto events =
      DoAs("box", RecordFact{live.epoch, TrialReported{live.id, {Step(1), {{"score", 1}}}}});
  EXPECT_EQ(ActorOf(events, TrialReported{}), "box");
  EXPECT_EQ(ActorOf(events, TrialDecided{}), kService);
  EXPECT_EQ(ActorOf(events, TrialEnded{}), kService);
}

TEST_F(Actors, ASweepBelongsToItsCreator) {
  DoAs("ada", CreateSweep{.spec = testing::ToySpec(), .owner = "ada"});
  EXPECT_EQ(sweep().owner, "ada");
  Create(testing::ToySpec());
  EXPECT_EQ(sweep().owner, kAdmin);
}

}  // namespace
}  // namespace attune

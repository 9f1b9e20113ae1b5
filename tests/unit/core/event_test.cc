#include "core/log/event.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace attune {
namespace {

const TrialId kTrial(SweepId(4), TrialNumber(17));

TEST(Event, KnowsWhichSweepAndTrialItIsAbout) {
  EXPECT_EQ(SweepOf(SweepCreated{.sweep = SweepId(4)}), SweepId(4));
  EXPECT_EQ(TrialOf(SweepCreated{.sweep = SweepId(4)}), std::nullopt);
  EXPECT_EQ(SweepOf(TrialCreated{.trial = kTrial}), SweepId(4));
  EXPECT_EQ(TrialOf(TrialCreated{.trial = kTrial}), kTrial);
  EXPECT_EQ(SweepOf(TrialReported{.attempt = {kTrial, 2}}), SweepId(4));
  EXPECT_EQ(TrialOf(TrialReported{.attempt = {kTrial, 2}}), kTrial);
  EXPECT_EQ(SweepOf(ExecutorJoined{.name = "box"}), std::nullopt);
  EXPECT_EQ(TrialOf(ExecutorLost{.name = "box"}), std::nullopt);
}

TEST(Event, OnlyEndEventsAreEnds) {
  EXPECT_FALSE(HasEnded(SweepState::kRunning));
  EXPECT_FALSE(HasEnded(SweepState::kPaused));
  EXPECT_TRUE(HasEnded(SweepState::kCompleted));
  EXPECT_TRUE(HasEnded(SweepState::kKilled));

  EXPECT_FALSE(HasEnded(TrialState::kPending));
  EXPECT_FALSE(HasEnded(TrialState::kRunning));
  EXPECT_FALSE(HasEnded(TrialState::kPaused));
  EXPECT_TRUE(HasEnded(TrialState::kStopped));
  EXPECT_TRUE(HasEnded(TrialState::kFailed));
}

TEST(Event, SweepsAndTrialsUseTheSameNamesOfStates) {
  EXPECT_EQ(Name(SweepState::kStopped), Name(TrialState::kStopped));
  EXPECT_EQ(Name(SweepState::kKilled), Name(TrialState::kKilled));
  EXPECT_EQ(Name(TrialState::kPending), "pending");
  EXPECT_EQ(Name(AttemptState::kAssigned), "assigned");
  EXPECT_EQ(Name(Outcome::kLost), "lost");
  EXPECT_EQ(Name(FailureKind::kSignal), "signal");
  EXPECT_EQ(Name(VerdictKind::kExploit), "exploit");
  EXPECT_EQ(Name(VerdictKind::kResize), "resize");
}

}  // namespace
}  // namespace attune

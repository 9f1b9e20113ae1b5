#include "slurm/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "system/files.h"
#include "tests/unit/slurm/manager_fixture.h"

namespace attune::slurm {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(SlurmManager, SubmitsWhatWaitsOnceAndUpToTheLimit) {
  Step();
  EXPECT_EQ(InQueue(), 0);
  Want(1, 2);
  Step();
  EXPECT_EQ(InQueue(), 2);
  Step(seconds(5));
  Step(seconds(500));
  EXPECT_EQ(InQueue(), 2) << "they wait in the queue, and that is known";
  Want(7, 1);
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 3);
}

TEST_F(SlurmManager, AKilledOneIsFollowedByOneThatSubmitsNothingAgain) {
  Want(1, 2);
  Step();
  Begin();
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 2);
  Want(1, 3);
  Step(seconds(5));
  EXPECT_TRUE(queue_.contains(Name(3))) << "numbers go on";
  EXPECT_EQ(InQueue(), 3);
}

TEST_F(SlurmManager, WhatWasOnItsWayWhenItDiedIsBelievedForAWhileAndThenNot) {
  sbatch_hangs_ = true;
  Want(1, 1);
  Step();
  EXPECT_THAT(folder_->fleet().intents, ElementsAre(1));
  Begin();
  sbatch_hangs_ = false;
  Step();
  Step(seconds(29));
  EXPECT_EQ(InQueue(), 0) << "it may still come";
  Step(seconds(2));
  EXPECT_EQ(InQueue(), 1);
  EXPECT_TRUE(queue_.contains(Name(2)));
  Step(seconds(5));
  EXPECT_THAT(folder_->fleet().intents, IsEmpty()) << "the queue knows it";
}

TEST_F(SlurmManager, AnIntentThatCameAfterAllIsAdopted) {
  sbatch_hangs_ = true;
  Want(1, 1);
  Step();
  Begin();
  queue_[Name(1)] = {.id = "7", .name = Name(1), .state = "RUNNING"};
  sbatch_hangs_ = false;
  Step(seconds(5));
  Step(seconds(100));
  EXPECT_EQ(InQueue(), 1);
}

TEST_F(SlurmManager, NumbersThatTheQueueKnowsAreNotUsedAgain) {
  queue_[Name(41)] = {.id = "7", .name = Name(41), .state = "RUNNING"};
  Want(2, 1);
  Step();
  EXPECT_TRUE(queue_.contains(Name(42)));
}

TEST_F(SlurmManager, RefusalsAreSaidAndPausesGrow) {
  refusal_ = "sbatch: error: Batch job submission failed: Invalid qos specification";
  Want(3, 1);
  Step();
  EXPECT_EQ(slurm_.Count("sbatch"), 1) << "the rest would be refused too";
  EXPECT_THAT(said_.back(), AllOf(HasSubstr("Invalid qos specification"), HasSubstr("in 10 s")));
  EXPECT_THAT(folder_->fleet().intents, IsEmpty());
  Step(seconds(9));
  EXPECT_EQ(slurm_.Count("sbatch"), 1);
  Step(seconds(1));
  EXPECT_EQ(slurm_.Count("sbatch"), 2);
  EXPECT_THAT(said_.back(), HasSubstr("in 20 s"));
  for (int i = 0; i < 20; ++i) Step(seconds(600));
  EXPECT_THAT(said_.back(), HasSubstr("in 600 s"));
  refusal_.clear();
  Step(seconds(600));
  EXPECT_EQ(InQueue(), 3);
}

TEST_F(SlurmManager, PilotsThatEndBeforeTheyJoinAreNotSubmittedInALoop) {
  Want(1, 1);
  Step();
  End(1, "FAILED");
  Step(seconds(5));
  EXPECT_THAT(said_.back(), AllOf(HasSubstr("ended before it joined (FAILED)"),
                                  HasSubstr("/logs/" + Name(1) + ".log")));
  EXPECT_EQ(InQueue(), 1);
  Step(seconds(10));
  EXPECT_EQ(InQueue(), 2);
  End(2, "COMPLETED");
  Step(seconds(5));
  EXPECT_THAT(said_.back(), HasSubstr("in 20 s"));
  Step(seconds(20));
  Join(3);
  Step(seconds(5));
  End(3, "NODE_FAIL");
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 4) << "one that had joined is replaced at once";
}

TEST_F(SlurmManager, APilotOfWhichNobodyNeedsAnythingIsLetGo) {
  Want(2, 1);
  Step();
  Join(1, 0);
  Join(2, 0);
  Want(0, 0);
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty()) << "they are at work";
  Join(2, 16);
  Step(seconds(5));
  Step(seconds(299));
  EXPECT_THAT(cancelled_, IsEmpty());
  Step(seconds(1));
  EXPECT_THAT(cancelled_, ElementsAre("102"));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "--batch", "--signal=TERM", "102"));
  Step(seconds(29));
  EXPECT_EQ(cancelled_.size(), 1u);
  Step(seconds(1));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "102")) << "it has not left by itself";
  End(2, "COMPLETED");
  Step(seconds(5));
  EXPECT_THAT(said_.back(), HasSubstr("as nobody needed it"));
}

TEST_F(SlurmManager, IdlenessIsCountedAnewOnceSomebodyNeedsIt) {
  Want(1, 1);
  Step();
  Join(1);
  Want(0, 0);
  Step(seconds(5));
  Step(seconds(200));
  Want(1, 1);
  Step(seconds(50));
  Want(0, 0);
  Step(seconds(50));
  Step(seconds(299));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, WhatStillWaitsInTheQueueIsCancelledWhenNobodyNeedsItAnyMore) {
  Want(1, 1);
  Step();
  Want(0, 0);
  Step(seconds(5));
  Step(seconds(300));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "101"));
}

TEST_F(SlurmManager, OneThatIsAwayIsNotIdleAndAfterAWhileNoRoomEither) {
  Want(1, 1);
  Step();
  Join(1, 0);
  Want(0, 0);
  Step(seconds(5));
  situation_.hosts.clear();  // its node is cut off
  Step(seconds(5));
  Want(1, 1);
  Step(seconds(30));
  EXPECT_EQ(InQueue(), 1) << "it may be about to come back";
  Step(seconds(1));
  EXPECT_EQ(InQueue(), 2) << "Slurm still says that it runs";
  Want(0, 0);
  Step(seconds(299));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, AnotherIsSubmittedBeforeOneEndsThatIsAtWork) {
  Want(1, 1);
  Step();
  Join(1, 0);
  Want(0, 0);
  const auto passes = [&](int number, seconds ran, seconds left) {
    queue_.at(Name(number)).ran = ran;
    queue_.at(Name(number)).left = left;
    Step(seconds(5));
  };
  passes(1, seconds(3000), seconds(600));
  EXPECT_EQ(InQueue(), 1);
  passes(1, seconds(3180), seconds(420));  // a tenth of its hour, and the minute in which it leaves
  EXPECT_EQ(InQueue(), 2);
  passes(1, seconds(3185), seconds(415));
  Step(seconds(600));
  EXPECT_EQ(InQueue(), 2) << "the other waits in the queue, and is needed";
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, NobodyFollowsOneThatEndsIdle) {
  Want(1, 1);
  Step();
  Join(1);
  Want(0, 0);
  queue_.at(Name(1)).ran = seconds(3500);
  queue_.at(Name(1)).left = seconds(100);
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 1);
  Want(1, 1);
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 2) << "what waits does not count on it either";
}

TEST_F(SlurmManager, TheMinimumStays) {
  limits_ = {2, 3};
  Begin();
  Step();
  EXPECT_EQ(InQueue(), 2);
  Join(1);
  Join(2);
  Step(seconds(5));
  Step(seconds(5000));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, APilotOfSeveralNodesIsOneThing) {
  limits_ = {0, 4, 2};
  Begin();
  Want(1, 2);
  Step();
  EXPECT_EQ(InQueue(), 1) << "both nodes in one job";
  JoinNode(1, 0);
  Step(seconds(5));
  EXPECT_THAT(said_.back(), Not(HasSubstr("has joined")));
  JoinNode(1, 1);
  Step(seconds(5));
  EXPECT_THAT(said_.back(), HasSubstr("has joined"));
  JoinNode(1, 0, 0);
  Want(0, 0);
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty()) << "one of its nodes is at work";
  JoinNode(1, 0);
  Step(seconds(5));
  Step(seconds(300));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "--batch", "--signal=TERM", "101"));
  End(1, "COMPLETED");
  Step(seconds(5));
  EXPECT_THAT(said_.back(), HasSubstr("as nobody needed it"));
}

TEST_F(SlurmManager, AfterAManagersDeathPilotsOfSeveralNodesAreKnownByTheirNodes) {
  limits_ = {0, 4, 2};
  Begin();
  Want(1, 2);
  Step();
  limits_ = {0, 4, 1};  // begun again with another size
  Begin();
  Want(4, 1);
  Step();
  EXPECT_EQ(InQueue(), 3) << "two nodes are taken, two are left";
}

TEST_F(SlurmManager, WhatIsLeftOfAPilotIsLetGoOnceNothingRunsThere) {
  limits_ = {0, 4, 2};
  Begin();
  Want(1, 2);
  Step();
  JoinNode(1, 0, 0);
  JoinNode(1, 1, 0);
  Want(0, 0);
  Step(seconds(5));
  LeaveNode(1, 1);  // its node has gone
  Step(seconds(5));
  Want(1, 2);
  Step(seconds(31));
  EXPECT_EQ(InQueue(), 2) << "another, whole";
  EXPECT_THAT(cancelled_, IsEmpty()) << "something still runs on the rest";
  JoinNode(1, 0);
  Step(seconds(5));
  EXPECT_THAT(cancelled_, ElementsAre("101"));
  EXPECT_THAT(said_.back(), HasSubstr("1 of its 2 executors have gone"));
}

TEST_F(SlurmManager, APilotOfWhichAPartNeverJoinsIsARefusal) {
  limits_ = {0, 2, 2};
  Begin();
  Want(1, 2);
  Step();
  JoinNode(1, 0);
  Step(seconds(5));
  Step(seconds(31));
  EXPECT_THAT(cancelled_, ElementsAre("101"));
  EXPECT_THAT(said_.back(), AllOf(HasSubstr("/logs/" + Name(1) + ".*"), HasSubstr("in 10 s")));
}

TEST_F(SlurmManager, ADrainedExecutorThatStillWorksKeepsItsPilot) {
  Want(1, 1);
  Step();
  Join(1, 0);
  situation_.hosts[0].takes_gangs = false;
  Want(0, 0);
  Step(seconds(5));
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, NothingIsDoneWhileServerOrQueueCannotBeAsked) {
  Want(1, 1);
  server_away_ = true;
  Step();
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 0);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("nobody answers"))) << "said once";
  server_away_ = false;
  slurm_.Fails("squeue", "slurm_load_jobs error: Unable to contact slurm controller");
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 0);
  EXPECT_THAT(said_.back(), HasSubstr("Unable to contact slurm controller"));
}

TEST_F(SlurmManager, AGangThatCannotBeIsSaidOnce) {
  Want(1, 4);
  Step();
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 0);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("sweep s1: "), HasSubstr("needs 4 pilots"))));
  ASSERT_EQ(view_.hindrances.size(), 1u);
  EXPECT_EQ(view_.hindrances[0].sweep, "s1");
}

TEST_F(SlurmManager, WhoAsksIsToldSlurmsOwnWords) {
  Want(3, 1);
  Step();
  Join(1);
  queue_.at(Name(2)).reason = "QOSMaxGRESPerUser";
  queue_.at(Name(3)).reason = "QOSMaxGRESPerUser";
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Hindrance{"", "2 pilots are PENDING (QOSMaxGRESPerUser)"}));
  EXPECT_EQ(view_.jobs.size(), 3u);
  EXPECT_THAT(view_.hosts, ElementsAre(Field(&Host::pilot, Name(1))));
  Join(2);
  Join(3);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, IsEmpty());
  slurm_.Fails("squeue", "slurm_load_jobs error: Unable to contact slurm controller");
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Field(&Hindrance::text, HasSubstr("Unable to contact slurm"))));
  EXPECT_EQ(view_.jobs.size(), 3u) << "as it was seen last";
}

TEST_F(SlurmManager, ARefusalIsShownForAsLongAsNothingIsTried) {
  refusal_ = "sbatch: error: Invalid account or account/partition combination specified";
  Want(1, 1);
  Step();
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Field(&Hindrance::text, HasSubstr("Invalid account or account"))));
  refusal_.clear();
  Step(seconds(10));
  queue_.at(Name(2)).reason = "";
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, ElementsAre(Hindrance{"", "1 pilot is PENDING"}));
}

TEST_F(SlurmManager, APilotThatDoesNotJoinIsNamedWithItsLog) {
  Want(1, 1);
  Step();
  queue_.at(Name(1)).state = "RUNNING";
  queue_.at(Name(1)).ran = seconds(60);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, ElementsAre(Hindrance{"", "1 pilot is RUNNING"}));
  queue_.at(Name(1)).ran = seconds(61);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Field(&Hindrance::text, AllOf(HasSubstr("can its node reach login:7071?"),
                                                        HasSubstr("/logs/" + Name(1) + ".log")))));
  EXPECT_EQ(said_.back(), view_.hindrances[0].text);
  Join(1);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, IsEmpty());
}

TEST_F(SlurmManager, OnlyOneHasTheFolder) {
  auto other = FleetFolder::Open(data_dir_);
  EXPECT_EQ(other->Lock().error().code, ErrorCode::kConflict);
  manager_.reset();
  folder_.reset();
  EXPECT_TRUE(other->Lock().ok());
}

TEST_F(SlurmManager, AFolderThatCannotBeReadNamesTheRemedy) {
  ASSERT_TRUE(WriteWhole(data_dir_ / "slurm/fleet.json", "{\"id\": 3", kPrivate).ok());
  const auto read = FleetFolder::OpenOrBegin(data_dir_);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("scancel"));
  EXPECT_EQ(FleetFolder::Open(data_dir_ / "elsewhere").error().code, ErrorCode::kNotFound);
}

TEST_F(SlurmManager, AllAreAskedAndThenEnded) {
  Want(2, 1);
  Step();
  Join(1);
  slurm_.runs.clear();
  std::set<std::string> told;
  EXPECT_EQ(*EndAll(tools_, *folder_, false, told), 2);
  EXPECT_THAT(slurm_.runs, Contains(ElementsAre("scancel", "--batch", "--signal=TERM", "101")));
  EXPECT_THAT(slurm_.runs, Contains(ElementsAre("scancel", "102")));
  EXPECT_EQ(*EndAll(tools_, *folder_, false, told), 2);
  EXPECT_EQ(slurm_.Count("scancel"), 2) << "asked twice an executor ends without a goodbye";
  told.clear();
  EXPECT_EQ(*EndAll(tools_, *folder_, true, told), 2);
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "101", "102"));
  End(1, "COMPLETED");
  End(2, "CANCELLED");
  EXPECT_EQ(*EndAll(tools_, *folder_, false, told), 0);
}

}  // namespace
}  // namespace attune::slurm

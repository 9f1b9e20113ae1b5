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

TEST_F(SlurmManager, SubmitsPilotsForWaitingGangsOnceAndUpToTheLimit) {
  Step();
  EXPECT_EQ(QueueSize(), 0);
  Demand(1, 2);
  Step();
  EXPECT_EQ(QueueSize(), 2);
  Step(seconds(5));
  Step(seconds(500));
  EXPECT_EQ(QueueSize(), 2) << "they wait in the queue";
  Demand(7, 1);
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 3);
}

TEST_F(SlurmManager, SubmitsForNewDemandWithoutAskingForJobs) {
  manager_->SubmitForDemand(now_);
  EXPECT_THAT(slurm_.runs, IsEmpty()) << "the jobs are not known yet";
  Step();
  slurm_.runs.clear();
  Demand(1, 2);
  manager_->SubmitForDemand(now_);
  manager_->SubmitForDemand(now_);
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 2) << "submitted pilots count";
  EXPECT_EQ(slurm_.CountRuns("squeue"), 0);
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 2);
}

TEST_F(SlurmManager, NewDemandDoesNotShortenADelay) {
  refusal_ = "sbatch: error: Batch job submission failed: Invalid qos specification";
  Demand(1, 1);
  Step();
  manager_->SubmitForDemand(now_ + seconds(9));
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 1);
  manager_->SubmitForDemand(now_ + seconds(10));
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 2);
}

TEST_F(SlurmManager, ARequeuedPilotIsNotMissing) {
  Demand(1, 1);
  Step();
  Join(1, 0);
  Demand(0, 0);
  Step(seconds(5));
  situation_.hosts.clear();
  queue_.at(Name(1)).state = "PENDING";
  Demand(1, 1);
  Step(seconds(5));
  Step(seconds(1000));
  EXPECT_EQ(QueueSize(), 1) << "it will run the gang again";
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, RestartedManagerSubmitsNoPilotAgain) {
  Demand(1, 2);
  Step();
  StartManager();
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 2);
  Demand(1, 3);
  Step(seconds(5));
  EXPECT_TRUE(queue_.contains(Name(3))) << "numbers continue";
  EXPECT_EQ(QueueSize(), 3);
}

TEST_F(SlurmManager, IntentsExpireIfTheQueueNeverShowsThem) {
  sbatch_hangs_ = true;
  Demand(1, 1);
  Step();
  EXPECT_THAT(folder_->fleet().intents, ElementsAre(1));
  StartManager();
  sbatch_hangs_ = false;
  Step();
  Step(seconds(29));
  EXPECT_EQ(QueueSize(), 0) << "sbatch may still be running";
  Step(seconds(2));
  EXPECT_EQ(QueueSize(), 1);
  EXPECT_TRUE(queue_.contains(Name(2)));
  Step(seconds(5));
  EXPECT_THAT(folder_->fleet().intents, IsEmpty()) << "the queue shows it";
}

TEST_F(SlurmManager, AdoptsAnIntentThatAppearsInTheQueue) {
  sbatch_hangs_ = true;
  Demand(1, 1);
  Step();
  StartManager();
  queue_[Name(1)] = {.id = "7", .name = Name(1), .state = "RUNNING"};
  sbatch_hangs_ = false;
  Step(seconds(5));
  Step(seconds(100));
  EXPECT_EQ(QueueSize(), 1);
}

TEST_F(SlurmManager, DoesNotReuseNumbersFromTheQueue) {
  queue_[Name(41)] = {.id = "7", .name = Name(41), .state = "RUNNING"};
  Demand(2, 1);
  Step();
  EXPECT_TRUE(queue_.contains(Name(42)));
}

TEST_F(SlurmManager, PrintsRefusalsAndIncreasesDelays) {
  refusal_ = "sbatch: error: Batch job submission failed: Invalid qos specification";
  Demand(3, 1);
  Step();
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 1) << "the others would be refused too";
  EXPECT_THAT(messages_.back(), AllOf(HasSubstr("Invalid qos"), HasSubstr("10 s")));
  EXPECT_THAT(folder_->fleet().intents, IsEmpty());
  Step(seconds(9));
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 1);
  Step(seconds(1));
  EXPECT_EQ(slurm_.CountRuns("sbatch"), 2);
  EXPECT_THAT(messages_.back(), HasSubstr("20 s"));
  for (int i = 0; i < 20; ++i) Step(seconds(600));
  EXPECT_THAT(messages_.back(), HasSubstr("600 s"));
  refusal_.clear();
  Step(seconds(600));
  EXPECT_EQ(QueueSize(), 3);
}

TEST_F(SlurmManager, DelaysSubmissionsAfterAPilotEndedBeforeItJoined) {
  Demand(1, 1);
  Step();
  End(1, "FAILED");
  Step(seconds(5));
  EXPECT_THAT(messages_.back(),
              AllOf(HasSubstr("(FAILED)"), HasSubstr("/logs/" + Name(1) + ".log")));
  EXPECT_EQ(QueueSize(), 1);
  Step(seconds(10));
  EXPECT_EQ(QueueSize(), 2);
  End(2, "COMPLETED");
  Step(seconds(5));
  EXPECT_THAT(messages_.back(), HasSubstr("20 s"));
  Step(seconds(20));
  Join(3);
  Step(seconds(5));
  End(3, "NODE_FAIL");
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 4) << "a pilot that had joined is replaced at once";
}

TEST_F(SlurmManager, ReleasesAPilotThatIsIdle) {
  Demand(2, 1);
  Step();
  Join(1, 0);
  Join(2, 0);
  Demand(0, 0);
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty()) << "they are busy";
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
  EXPECT_THAT(messages_.back(), HasSubstr("has ended: COMPLETED, "));
}

TEST_F(SlurmManager, CountsIdleTimeAgainAfterAPilotWasNeeded) {
  Demand(1, 1);
  Step();
  Join(1);
  Demand(0, 0);
  Step(seconds(5));
  Step(seconds(200));
  Demand(1, 1);
  Step(seconds(50));
  Demand(0, 0);
  Step(seconds(50));
  Step(seconds(299));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, CancelsQueuedPilotsThatAreNoLongerNeeded) {
  Demand(1, 1);
  Step();
  Demand(0, 0);
  Step(seconds(5));
  Step(seconds(300));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "101"));
}

TEST_F(SlurmManager, AMissingPilotIsNotIdleAndIsReplacedAfterAWhile) {
  Demand(1, 1);
  Step();
  Join(1, 0);
  Demand(0, 0);
  Step(seconds(5));
  situation_.hosts.clear();  // its node is unreachable
  Step(seconds(5));
  Demand(1, 1);
  Step(seconds(30));
  EXPECT_EQ(QueueSize(), 1) << "it may come back";
  Step(seconds(1));
  EXPECT_EQ(QueueSize(), 2) << "Slurm still shows it as running";
  Demand(0, 0);
  Step(seconds(299));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, SubmitsASuccessorBeforeABusyPilotEnds) {
  Demand(1, 1);
  Step();
  Join(1, 0);
  Demand(0, 0);
  const auto passes = [&](int number, seconds ran, seconds left) {
    queue_.at(Name(number)).ran = ran;
    queue_.at(Name(number)).left = left;
    Step(seconds(5));
  };
  passes(1, seconds(3000), seconds(600));
  EXPECT_EQ(QueueSize(), 1);
  passes(1, seconds(3180), seconds(420));  // a tenth of its hour, plus kLeaveBefore
  EXPECT_EQ(QueueSize(), 2);
  passes(1, seconds(3185), seconds(415));
  Step(seconds(600));
  EXPECT_EQ(QueueSize(), 2) << "the successor in the queue is needed";
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, SubmitsNoSuccessorForAnIdlePilot) {
  Demand(1, 1);
  Step();
  Join(1);
  Demand(0, 0);
  queue_.at(Name(1)).ran = seconds(3500);
  queue_.at(Name(1)).left = seconds(100);
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 1);
  Demand(1, 1);
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 2) << "a waiting gang needs another pilot";
}

TEST_F(SlurmManager, KeepsTheMinimumNumberOfPilots) {
  limits_ = {2, 3};
  StartManager();
  Step();
  EXPECT_EQ(QueueSize(), 2);
  Join(1);
  Join(2);
  Step(seconds(5));
  Step(seconds(5000));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, TreatsAPilotWithSeveralNodesAsOneUnit) {
  limits_ = {0, 4, 2};
  StartManager();
  Demand(1, 2);
  Step();
  EXPECT_EQ(QueueSize(), 1) << "both nodes in one job";
  JoinNode(1, 0);
  Step(seconds(5));
  EXPECT_THAT(messages_.back(), HasSubstr("submitted " + Name(1)));
  JoinNode(1, 1);
  Step(seconds(5));
  EXPECT_THAT(messages_.back(), HasSubstr(Name(1) + " has joined"));
  JoinNode(1, 0, 0);
  Demand(0, 0);
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty()) << "one of its nodes is busy";
  JoinNode(1, 0);
  Step(seconds(5));
  Step(seconds(300));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "--batch", "--signal=TERM", "101"));
  End(1, "COMPLETED");
  Step(seconds(5));
  EXPECT_THAT(messages_.back(), HasSubstr("has ended: COMPLETED, "));
}

TEST_F(SlurmManager, CountsNodesOfExistingPilotsAfterARestart) {
  limits_ = {0, 4, 2};
  StartManager();
  Demand(1, 2);
  Step();
  limits_ = {0, 4, 1};  // restarted with another size
  StartManager();
  Demand(4, 1);
  Step();
  EXPECT_EQ(QueueSize(), 3) << "two nodes are taken, two are left";
}

TEST_F(SlurmManager, ReleasesTheRestOfAPilotWhenNothingRunsThere) {
  limits_ = {0, 4, 2};
  StartManager();
  Demand(1, 2);
  Step();
  JoinNode(1, 0, 0);
  JoinNode(1, 1, 0);
  Demand(0, 0);
  Step(seconds(5));
  LeaveNode(1, 1);  // its node was lost
  Step(seconds(5));
  Demand(1, 2);
  Step(seconds(31));
  EXPECT_EQ(QueueSize(), 2) << "a complete second pilot";
  EXPECT_THAT(cancelled_, IsEmpty()) << "a gang still runs on the other node";
  JoinNode(1, 0);
  Step(seconds(5));
  EXPECT_THAT(cancelled_, ElementsAre("101"));
  EXPECT_THAT(messages_.back(), HasSubstr("1 of its 2 executors"));
}

TEST_F(SlurmManager, DelaysSubmissionsIfPartOfAPilotNeverJoins) {
  limits_ = {0, 2, 2};
  StartManager();
  Demand(1, 2);
  Step();
  JoinNode(1, 0);
  Step(seconds(5));
  Step(seconds(31));
  EXPECT_THAT(cancelled_, ElementsAre("101"));
  EXPECT_THAT(messages_.back(), AllOf(HasSubstr("/logs/" + Name(1) + ".*"), HasSubstr("10 s")));
}

TEST_F(SlurmManager, KeepsThePilotOfADrainedBusyExecutor) {
  Demand(1, 1);
  Step();
  Join(1, 0);
  situation_.hosts[0].takes_gangs = false;
  Demand(0, 0);
  Step(seconds(5));
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmManager, DoesNothingWhileServerOrQueueIsUnavailable) {
  Demand(1, 1);
  server_away_ = true;
  Step();
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 0);
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("no answer"))) << "printed once";
  server_away_ = false;
  slurm_.SetFailure("squeue", "slurm_load_jobs error: Unable to contact slurm controller");
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 0);
  EXPECT_THAT(messages_.back(), HasSubstr("slurm controller"));
}

TEST_F(SlurmManager, ReportsAnImpossibleGangOnce) {
  Demand(1, 4);
  Step();
  Step(seconds(5));
  EXPECT_EQ(QueueSize(), 0);
  EXPECT_THAT(messages_, ElementsAre(AllOf(HasSubstr("sweep s1: "), HasSubstr("4 pilots"))));
  ASSERT_EQ(view_.hindrances.size(), 1u);
  EXPECT_EQ(view_.hindrances[0].sweep, "s1");
}

TEST_F(SlurmManager, ShowsSlurmsReasons) {
  Demand(3, 1);
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
  slurm_.SetFailure("squeue", "slurm_load_jobs error: Unable to contact slurm controller");
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Field(&Hindrance::text, HasSubstr("slurm controller"))));
  EXPECT_EQ(view_.jobs.size(), 3u) << "from the last answer";
}

TEST_F(SlurmManager, ShowsARefusalUntilTheNextAttempt) {
  refusal_ = "sbatch: error: Invalid account or account/partition combination specified";
  Demand(1, 1);
  Step();
  EXPECT_THAT(view_.hindrances, ElementsAre(Field(&Hindrance::text, HasSubstr("Invalid account"))));
  refusal_.clear();
  Step(seconds(10));
  queue_.at(Name(2)).reason = "";
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, ElementsAre(Hindrance{"", "1 pilot is PENDING"}));
}

TEST_F(SlurmManager, NamesThePilotThatDoesNotJoinAndItsLog) {
  Demand(1, 1);
  Step();
  queue_.at(Name(1)).state = "RUNNING";
  queue_.at(Name(1)).ran = seconds(60);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, ElementsAre(Hindrance{"", "1 pilot is RUNNING"}));
  queue_.at(Name(1)).ran = seconds(61);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances,
              ElementsAre(Field(&Hindrance::text, AllOf(HasSubstr("login:7071"),
                                                        HasSubstr("/logs/" + Name(1) + ".log")))));
  EXPECT_EQ(messages_.back(), view_.hindrances[0].text);
  Join(1);
  Step(seconds(5));
  EXPECT_THAT(view_.hindrances, IsEmpty());
}

TEST_F(SlurmManager, OnlyOneManagerLocksTheFolder) {
  auto other = FleetFolder::Open(data_dir_, SlurmEngine::Facts());
  EXPECT_EQ(other->Lock().error().code, ErrorCode::kConflict);
  manager_.reset();
  folder_.reset();
  EXPECT_TRUE(other->Lock().ok());
}

TEST_F(SlurmManager, KeepsTheEnginesSettings) {
  FleetFolder::Fleet fleet = folder_->fleet();
  fleet.settings["shared"] = "/shared";
  ASSERT_TRUE(folder_->Save(fleet).ok());
  const auto other = FleetFolder::Open(data_dir_, SlurmEngine::Facts());
  EXPECT_EQ(other->fleet().settings, fleet.settings);
  EXPECT_EQ(other->fleet().id, fleet.id);
}

TEST_F(SlurmManager, RefusesADamagedFolder) {
  ASSERT_TRUE(WriteWhole(data_dir_ / "slurm/fleet.json", "{\"id\": 3", kPrivate).ok());
  const auto read = FleetFolder::OpenOrCreate(data_dir_, SlurmEngine::Facts());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("scancel"));
  EXPECT_EQ(FleetFolder::Open(data_dir_ / "elsewhere", SlurmEngine::Facts()).error().code,
            ErrorCode::kNotFound);
}

TEST_F(SlurmManager, EndAllAsksFirstAndThenCancels) {
  Demand(2, 1);
  Step();
  Join(1);
  slurm_.runs.clear();
  std::set<std::string> told;
  EXPECT_EQ(*EndAll(*engine_, *engine_->Jobs(), false, told), 2);
  EXPECT_THAT(slurm_.runs, Contains(ElementsAre("scancel", "--batch", "--signal=TERM", "101")));
  EXPECT_THAT(slurm_.runs, Contains(ElementsAre("scancel", "102")));
  EXPECT_EQ(*EndAll(*engine_, *engine_->Jobs(), false, told), 2);
  EXPECT_EQ(slurm_.CountRuns("scancel"), 2)
      << "a second signal would end an executor without a goodbye";
  told.clear();
  EXPECT_EQ(*EndAll(*engine_, *engine_->Jobs(), true, told), 2);
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "101", "102"));
  End(1, "COMPLETED");
  End(2, "CANCELLED");
  EXPECT_EQ(*EndAll(*engine_, *engine_->Jobs(), false, told), 0);
}

}  // namespace
}  // namespace attune::slurm

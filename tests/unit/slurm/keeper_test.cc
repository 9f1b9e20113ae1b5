#include "slurm/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

#include "tests/unit/slurm/recorded.h"

namespace attune::slurm {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Room kRoom{.cpus = 16};

// A cluster that does as it is told, a server whose gangs wait, and a clock that moves when it is
// told to.
class SlurmKeeper : public testing::Test {
 protected:
  SlurmKeeper() {
    std::string name = (std::filesystem::temp_directory_path() / "attune-slurm-XXXXXX").string();
    data_dir_ = mkdtemp(name.data());
    slurm_.answers["sbatch"] = [this](const auto& argv) { return Sbatch(argv); };
    slurm_.answers["squeue"] = [this](const auto&) { return Squeue(); };
    slurm_.answers["scancel"] = [this](const auto& argv) { return Scancel(argv); };
    Begin();
  }
  ~SlurmKeeper() override { std::filesystem::remove_all(data_dir_); }

  // A keeper on what the one before has left, which was killed.
  void Begin() {
    keeper_.reset();
    folder_.reset();
    folder_ = std::make_unique<FleetFolder>(*FleetFolder::OpenOrBegin(data_dir_));
    ASSERT_TRUE(folder_->Lock().ok());
    hours_ = std::make_unique<HoursBook>(*HoursBook::Open(folder_->path()));
    keeper_ = std::make_unique<Keeper>(
        tools_, *folder_, *hours_,
        Keeper::Options{.pilot = {.partition = "main"},
                        .places = {.server = "login:7071", .logs = "/logs"},
                        .script = "/pilot.sh",
                        .room = kRoom,
                        .limits = limits_,
                        .idle = seconds(300)},
        [this]() -> Result<Situation> {
          if (server_away_) return Error{ErrorCode::kUnavailable, "nobody answers"};
          return situation_;
        },
        [this](const std::string& text) { said_.push_back(text); },
        [this](const KeeperView& view) { view_ = view; });
  }

  void Step(seconds later = seconds(0)) {
    now_ += later;
    keeper_->Step(now_);
  }

  void Want(int gangs, int workers) {
    situation_.wanted = {{.sweep = "s1",
                          .gangs = gangs,
                          .workers = workers,
                          .min_workers = workers,
                          .worker = {.cpus = 16}}};
    if (gangs == 0) situation_.wanted.clear();
  }
  std::string Name(int number) const { return PilotName(folder_->fleet().id, number); }

  // Its job runs, and its executor has joined.
  void Join(int number, int cpus_free = 16) {
    queue_.at(Name(number)).state = "RUNNING";
    std::erase_if(situation_.hosts, [&](const Host& host) { return host.name == Name(number); });
    situation_.hosts.push_back({Name(number), kRoom, {.cpus = cpus_free}});
  }
  // The same of one of its nodes.
  void JoinNode(int number, int node, int cpus_free = 16) {
    queue_.at(Name(number)).state = "RUNNING";
    LeaveNode(number, node);
    situation_.hosts.push_back({NodeName(number, node), kRoom, {.cpus = cpus_free}});
  }
  void LeaveNode(int number, int node) {
    std::erase_if(situation_.hosts,
                  [&](const Host& host) { return host.name == NodeName(number, node); });
  }
  std::string NodeName(int number, int node) const {
    return Name(number) + "." + std::to_string(node);
  }
  void End(int number, const std::string& state) {
    queue_.at(Name(number)).state = state;
    std::erase_if(situation_.hosts, [&](const Host& host) {
      return PilotOf(folder_->fleet().id, host.name) == Name(number);
    });
  }

  Result<Ran> Sbatch(const std::vector<std::string>& argv) {
    if (!refusal_.empty()) return Ran{.exit_code = 1, .err = refusal_};
    if (sbatch_hangs_) return Error{ErrorCode::kUnavailable, "`sbatch` did not end within 30 s"};
    for (const std::string& word : argv) {
      if (!word.starts_with("--job-name=")) continue;
      const std::string name = word.substr(11);
      EXPECT_FALSE(queue_.contains(name)) << "submitted twice";
      queue_[name] = {.id = std::to_string(++last_job_),
                      .name = name,
                      .state = "PENDING",
                      .nodes = limits_.nodes_per_pilot};
    }
    return Ran{.out = std::to_string(last_job_) + "\n"};
  }
  Result<Ran> Squeue() const {
    Ran ran;
    const auto time = [](seconds all) {
      return std::to_string(all.count() / 60) + ":" + std::to_string(all.count() % 60);
    };
    for (const auto& [name, job] : queue_)
      ran.out += job.id + "|" + name + "|" + job.state + "|N/A|" + std::to_string(job.nodes) + "|" +
                 time(job.ran) + "|" + (job.left ? time(*job.left) : "UNLIMITED") + "|" + job.node +
                 "|" + (job.reason.empty() ? "None" : job.reason) + "\n";
    return ran;
  }
  Result<Ran> Scancel(const std::vector<std::string>& argv) {
    cancelled_.push_back(argv.back());
    return Ran{};
  }
  int InQueue() const { return static_cast<int>(queue_.size()); }

  std::filesystem::path data_dir_;
  Recorded slurm_;
  Tools tools_{slurm_};
  Limits limits_{0, 3};
  Situation situation_;
  bool server_away_ = false;
  bool sbatch_hangs_ = false;
  std::string refusal_;
  std::map<std::string, Job> queue_;
  int last_job_ = 100;
  std::vector<std::string> cancelled_;
  std::vector<std::string> said_;
  KeeperView view_;
  std::unique_ptr<FleetFolder> folder_;
  std::unique_ptr<HoursBook> hours_;
  std::unique_ptr<Keeper> keeper_;
  Keeper::Clock::time_point now_{seconds(1000)};
};

TEST_F(SlurmKeeper, SubmitsWhatWaitsOnceAndUpToTheLimit) {
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

TEST_F(SlurmKeeper, AKilledOneIsFollowedByOneThatSubmitsNothingAgain) {
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

TEST_F(SlurmKeeper, WhatWasOnItsWayWhenItDiedIsBelievedForAWhileAndThenNot) {
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

TEST_F(SlurmKeeper, AnIntentThatCameAfterAllIsAdopted) {
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

TEST_F(SlurmKeeper, NumbersThatTheQueueKnowsAreNotUsedAgain) {
  queue_[Name(41)] = {.id = "7", .name = Name(41), .state = "RUNNING"};
  Want(2, 1);
  Step();
  EXPECT_TRUE(queue_.contains(Name(42)));
}

TEST_F(SlurmKeeper, RefusalsAreSaidAndPausesGrow) {
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

TEST_F(SlurmKeeper, PilotsThatEndBeforeTheyJoinAreNotSubmittedInALoop) {
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

TEST_F(SlurmKeeper, APilotOfWhichNobodyNeedsAnythingIsLetGo) {
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

TEST_F(SlurmKeeper, IdlenessIsCountedAnewOnceSomebodyNeedsIt) {
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

TEST_F(SlurmKeeper, WhatStillWaitsInTheQueueIsCancelledWhenNobodyNeedsItAnyMore) {
  Want(1, 1);
  Step();
  Want(0, 0);
  Step(seconds(5));
  Step(seconds(300));
  EXPECT_THAT(slurm_.runs.back(), ElementsAre("scancel", "101"));
}

TEST_F(SlurmKeeper, OneThatIsAwayIsNotIdleAndAfterAWhileNoRoomEither) {
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

TEST_F(SlurmKeeper, AnotherIsSubmittedBeforeOneEndsThatIsAtWork) {
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

TEST_F(SlurmKeeper, NobodyFollowsOneThatEndsIdle) {
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

TEST_F(SlurmKeeper, TheMinimumStays) {
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

TEST_F(SlurmKeeper, APilotOfSeveralNodesIsOneThing) {
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

TEST_F(SlurmKeeper, AfterAKeepersDeathPilotsOfSeveralNodesAreKnownByTheirNodes) {
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

TEST_F(SlurmKeeper, WhatIsLeftOfAPilotIsLetGoOnceNothingRunsThere) {
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

TEST_F(SlurmKeeper, APilotOfWhichAPartNeverJoinsIsARefusal) {
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

TEST_F(SlurmKeeper, ADrainedExecutorThatStillWorksKeepsItsPilot) {
  Want(1, 1);
  Step();
  Join(1, 0);
  situation_.hosts[0].takes_gangs = false;
  Want(0, 0);
  Step(seconds(5));
  Step(seconds(1000));
  EXPECT_THAT(cancelled_, IsEmpty());
}

TEST_F(SlurmKeeper, NothingIsDoneWhileServerOrQueueCannotBeAsked) {
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

TEST_F(SlurmKeeper, AGangThatCannotBeIsSaidOnce) {
  Want(1, 4);
  Step();
  Step(seconds(5));
  EXPECT_EQ(InQueue(), 0);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("sweep s1: "), HasSubstr("needs 4 pilots"))));
  ASSERT_EQ(view_.hindrances.size(), 1u);
  EXPECT_EQ(view_.hindrances[0].sweep, "s1");
}

TEST_F(SlurmKeeper, WhoAsksIsToldSlurmsOwnWords) {
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

TEST_F(SlurmKeeper, ARefusalIsShownForAsLongAsNothingIsTried) {
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

TEST_F(SlurmKeeper, APilotThatDoesNotJoinIsNamedWithItsLog) {
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

TEST_F(SlurmKeeper, OnlyOneHasTheFolder) {
  auto other = FleetFolder::Open(data_dir_);
  EXPECT_EQ(other->Lock().error().code, ErrorCode::kConflict);
  keeper_.reset();
  folder_.reset();
  EXPECT_TRUE(other->Lock().ok());
}

TEST_F(SlurmKeeper, AFolderThatCannotBeReadSaysWhatToDo) {
  ASSERT_TRUE(WriteWhole(data_dir_ / "slurm/fleet.json", "{\"id\": 3").ok());
  const auto read = FleetFolder::OpenOrBegin(data_dir_);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("scancel"));
  EXPECT_EQ(FleetFolder::Open(data_dir_ / "elsewhere").error().code, ErrorCode::kNotFound);
}

TEST_F(SlurmKeeper, AllAreAskedAndThenEnded) {
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

TEST(SlurmPilot, NamesHaveTheFleetAndTheNumber) {
  EXPECT_EQ(PilotName("0a1b2c3d", 7), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotNumber("0a1b2c3d", "attune-0a1b2c3d-7"), 7);
  EXPECT_FALSE(PilotNumber("0a1b2c3d", "attune-0a1b2c3e-7"));
  EXPECT_FALSE(PilotNumber("0a1b2c3d", "attune-0a1b2c3d-7x"));
}

TEST(SlurmPilot, ExecutorsAreKnownByTheirPilot) {
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3d-7"), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3d-7.12"), "attune-0a1b2c3d-7");
  EXPECT_EQ(PilotOf("0a1b2c3d", "attune-0a1b2c3e-7.12"), "");
  EXPECT_EQ(PilotOf("0a1b2c3d", "node7.cluster.edu"), "");
}

TEST(SlurmPilot, AsksForAWholeNodeUnlessCpusAreNamed) {
  const auto whole = SbatchOptions({.partition = "gpu", .gres = "gpu:8", .time = "4:00:00"},
                                   {.logs = "/s/logs"}, "attune-x-1");
  EXPECT_THAT(whole,
              AllOf(Contains("--exclusive"), Contains("--mem=0"), Contains("--gres=gpu:8"),
                    Contains("--time=4:00:00"), Contains("--no-requeue"),
                    Contains("--signal=B:TERM@60"), Contains("--output=/s/logs/attune-x-1.log")));
  const auto part = SbatchOptions(
      {.partition = "cpu", .account = "lab", .cpus = 4, .more = {"--constraint=rome"}}, {},
      "attune-x-1");
  EXPECT_THAT(part, AllOf(Contains("--cpus-per-task=4"), Contains("--account=lab"),
                          Not(Contains("--exclusive")), Not(Contains(HasSubstr("--mem")))));
  EXPECT_EQ(part.back(), "--constraint=rome") << "a person's own options win";
}

TEST(SlurmPilot, WhatSlurmWouldLetWaitForEverIsRefused) {
  const Partition partition{
      .name = "short", .time_limit = std::chrono::minutes(10), .nodes = 1, .cpus = 16, .gpus = 2};
  const auto wrong = [&](const PilotOptions& options) {
    const Status status = Check(options, partition);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(wrong({.time = "0:30"}), HasSubstr("60 s before its time is over"));
  EXPECT_THAT(wrong({.time = "1"}), HasSubstr("60 s before its time is over"));
  EXPECT_THAT(wrong({.time = "11"}), HasSubstr("PartitionTimeLimit"));
  EXPECT_THAT(wrong({.time = "soon"}), HasSubstr("not a time"));
  EXPECT_THAT(wrong({.gres = "gpu:3"}), HasSubstr("no node of the partition short"));
  EXPECT_THAT(wrong({.cpus = 17}), HasSubstr("have 16"));
  EXPECT_THAT(wrong({.nodes = 2}), HasSubstr("has 1 nodes"));
  EXPECT_EQ(wrong({.gres = "gpu:2", .time = "10", .cpus = 16}), "");
  EXPECT_EQ(wrong({.qos = "long", .time = "11"}), "") << "a QOS may allow it";
}

TEST(SlurmPilot, ScriptsQuoteWhatIsInThem) {
  const std::string script = PilotScript({.program = "/opt/it's here/attune",
                                          .server = "login:7071",
                                          .token_file = "/s/join",
                                          .data_dir = "/s",
                                          .logs = "/s/my logs"},
                                         "/s/my pilot.sh");
  EXPECT_THAT(script,
              HasSubstr("executor=('/opt/it'\\''s here/attune' executor --server 'login:7071'"));
  EXPECT_THAT(script, HasSubstr("--give-up 600"));
  EXPECT_THAT(script, AllOf(HasSubstr("logs='/s/my logs'"), HasSubstr("script='/s/my pilot.sh'")));
}

TEST(SlurmPilot, HasWhatWasAskedOrWhatTheNodesHave) {
  const Partition partition{
      .name = "main", .nodes = 3, .cpus = 64, .memory_bytes = int64_t{256} << 30, .gpus = 4};
  EXPECT_EQ(RoomOf({}, partition), (Room{64, 0, int64_t{256} << 30}));
  EXPECT_EQ(RoomOf({.gres = "gpu:a100:2", .cpus = 8, .memory = "16G"}, partition),
            (Room{8, 2, int64_t{16} << 30}));
  EXPECT_EQ(RoomOf({.memory = "4000"}, partition).memory_bytes, int64_t{4000} << 20);
}

}  // namespace
}  // namespace attune::slurm

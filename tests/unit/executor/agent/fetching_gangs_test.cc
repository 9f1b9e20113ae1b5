#include "executor/agent/fetching_gangs.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace attune::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr gang::AttemptId kAttempt{.sweep = 1, .trial = 3, .attempt = 2, .epoch = 7};

// Records the calls of the supervisor.
class RecordedGangs final : public Gangs {
 public:
  void Run(gang::GangSpec spec) override { ran.push_back(std::move(spec)); }
  void Cancel(const gang::AttemptId&, gang::CancelReason) override { calls.emplace_back("cancel"); }
  void SetVerdict(const gang::AttemptId&, const gang::Verdict&) override {
    calls.emplace_back("verdict");
  }
  void Yield(const gang::AttemptId&) override { calls.emplace_back("yield"); }
  void OnPeersFinished(const gang::AttemptId&) override { calls.emplace_back("peers finished"); }
  void SetRendezvous(const gang::AttemptId&, const channel::Rendezvous&) override {
    calls.emplace_back("rendezvous");
  }
  void SetDeadline(gang::BootClock::time_point) override { calls.emplace_back("deadline"); }

  std::vector<gang::GangSpec> ran;
  std::vector<std::string> calls;
};

class FetchingGangsTest : public testing::Test {
 protected:
  static gang::GangSpec Spec(bool fetch = true, int first_rank = 0) {
    gang::GangSpec spec{.attempt = kAttempt, .ranks = {{.rank = first_rank}}};
    spec.resume = gang::Resume{9, "/elsewhere/step-9-attempt-1", "sha256:abc"};
    if (fetch) spec.fetch = gang::RemoteFiles{.name = {1, 3, 1, 9}};
    return spec;
  }

  RecordedGangs recorded_;
  std::vector<std::string> fetches_;
  int released_ = 0;
  std::vector<gang::Ended> ended_;
  FetchingGangs gangs_{
      recorded_,
      {.checkpoint =
           [this](const auto&, const gang::RemoteFiles& files, const std::string& digest) {
             fetches_.push_back(gang::ToString(files.name) + " " + digest);
           },
       .code = [this](const gang::GangSpec& spec) { fetches_.push_back(spec.code->files.code); },
       .data =
           [this](const gang::GangSpec& spec) {
             for (const gang::DataFile& file : spec.data) fetches_.push_back(file.name);
           },
       .environment =
           [this](const gang::GangSpec& spec) {
             fetches_.push_back(spec.container ? spec.container->image
                                               : spec.environment_files->python.string());
           },
       .release = [this](const auto&) { ++released_; }},
      [this](const gang::AttemptId&, gang::Ended ended) { ended_.push_back(std::move(ended)); }};
};

TEST_F(FetchingGangsTest, RunsAtOnceIfTheCheckpointIsReadable) {
  gangs_.Run(Spec(false));
  EXPECT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_THAT(fetches_, IsEmpty());
}

TEST_F(FetchingGangsTest, RunsFromTheCopyAfterTheFetch) {
  gangs_.Run(Spec());
  EXPECT_THAT(fetches_, ElementsAre("s1/3/1-9 sha256:abc"));
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnCheckpoint(kAttempt, {.folder = "/here/abc"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_EQ(recorded_.ran[0].resume->path, "/here/abc");
  EXPECT_EQ(released_, 0);
  gangs_.OnEnded(kAttempt);
  EXPECT_EQ(released_, 1);
}

TEST_F(FetchingGangsTest, DoesNotFetchForRanksWithoutRankZero) {
  gangs_.Run(Spec(true, 4));
  EXPECT_THAT(recorded_.ran, testing::SizeIs(1));
}

TEST_F(FetchingGangsTest, YieldWaitsForTheFetch) {
  gangs_.Run(Spec());
  gangs_.Yield(kAttempt);
  EXPECT_THAT(recorded_.calls, IsEmpty());
  gangs_.OnCheckpoint(kAttempt, {.folder = "/here/abc"});
  EXPECT_THAT(recorded_.calls, ElementsAre("yield"));
  gangs_.Yield(kAttempt);
  EXPECT_THAT(recorded_.calls, ElementsAre("yield", "yield"));
}

TEST_F(FetchingGangsTest, PassesDeadlinesOn) {
  gangs_.Run(Spec());
  gangs_.SetDeadline(Machine::kNever);
  EXPECT_THAT(recorded_.calls, ElementsAre("deadline"));
}

TEST_F(FetchingGangsTest, AnUnwantedGangEndsAtOnce) {
  gangs_.Run(Spec());
  gangs_.Cancel(kAttempt, gang::CancelReason::kUnwanted);
  ASSERT_THAT(ended_, testing::SizeIs(1));
  EXPECT_EQ(ended_[0].outcome, gang::Outcome::kCancelled);
  EXPECT_EQ(released_, 1);
  gangs_.OnCheckpoint(kAttempt, {.folder = "/here/abc"});  // a late result of the cancelled fetch
  EXPECT_THAT(recorded_.ran, IsEmpty());
  EXPECT_THAT(recorded_.calls, IsEmpty());
}

TEST_F(FetchingGangsTest, AWaitingGangWhoseExecutorEndsFailsWithTheLease) {
  gangs_.Run(Spec());
  gangs_.Cancel(kAttempt, gang::CancelReason::kLeavingSoon);
  ASSERT_THAT(ended_, testing::SizeIs(1));
  EXPECT_EQ(ended_[0].failure->kind, gang::FailureKind::kLease);
}

TEST_F(FetchingGangsTest, AFailedFetchIsTheHostsFailureUnlessTheCheckpointIsDamaged) {
  gangs_.Run(Spec());
  gangs_.OnCheckpoint(kAttempt, {.error = "the disk is full"});
  gangs_.Run(Spec());
  gangs_.OnCheckpoint(kAttempt, {.error = "it is damaged", .is_final = true});
  ASSERT_THAT(ended_, testing::SizeIs(2));
  EXPECT_EQ(ended_[0].failure->kind, gang::FailureKind::kHost);
  EXPECT_EQ(ended_[0].failure->message, "the disk is full");
  EXPECT_EQ(ended_[1].failure->kind, gang::FailureKind::kExit);
}

gang::GangSpec SpecWithCode(bool writable) {
  gang::GangSpec spec{.attempt = kAttempt, .ranks = {{.rank = 0}}, .work_dir = "/data/work"};
  spec.program.command = {"./bin/train", "--fast"};
  spec.program.working_directory = "examples";
  spec.code = gang::Code{.files = {.code = "sha256:c0de"}, .writable = writable};
  return spec;
}

TEST_F(FetchingGangsTest, RunsACopyOfTheCodeInTheTrialsFolder) {
  gangs_.Run(SpecWithCode(false));
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de"));
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  const gang::GangSpec& spec = recorded_.ran[0];
  EXPECT_THAT(spec.program.command, ElementsAre("/copies/c0de/tree/bin/train", "--fast"));
  EXPECT_EQ(spec.program.working_directory, "/copies/c0de/tree/examples");
  EXPECT_EQ(spec.RankDirectory(), "/data/work/examples");
}

TEST_F(FetchingGangsTest, RunsTheTrialsOwnCopyIfItIsWritable) {
  gangs_.Run(SpecWithCode(true));
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_EQ(recorded_.ran[0].program.command[0], "/data/work/bin/train");
  EXPECT_EQ(recorded_.ran[0].program.working_directory, "/data/work/examples");
}

TEST_F(FetchingGangsTest, AProgramInThePathKeepsItsName) {
  gang::GangSpec spec = SpecWithCode(false);
  spec.program.command = {"python3", "train.py"};
  gangs_.Run(spec);
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  EXPECT_THAT(recorded_.ran.at(0).program.command, ElementsAre("python3", "train.py"));
}

gang::GangSpec SpecWithData() {
  gang::GangSpec spec{.attempt = kAttempt, .ranks = {{.rank = 4}}};
  spec.program.environment = {{"EPOCHS", "3"}};
  spec.data = {{.name = "train", .url = "https://a/t.bin?key=1", .variable = "ATTUNE_DATA_TRAIN"},
               {.name = "test-set", .url = "https://a/", .variable = "ATTUNE_DATA_TEST_SET"}};
  return spec;
}

TEST_F(FetchingGangsTest, RanksFindTheirDataByTheEnvironment) {
  gangs_.Run(SpecWithData());
  EXPECT_THAT(fetches_, ElementsAre("train", "test-set"));
  gangs_.OnData(kAttempt, {.name = "data train", .folder = "/copies/1"});
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnData(kAttempt, {.name = "data test-set", .folder = "/copies/2"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_THAT(recorded_.ran[0].program.environment,
              ElementsAre(testing::Pair("EPOCHS", "3"),
                          testing::Pair("ATTUNE_DATA_TRAIN", "/copies/1/t.bin"),
                          testing::Pair("ATTUNE_DATA_TEST_SET", "/copies/2/data")));
}

TEST_F(FetchingGangsTest, AFailedDownloadEndsTheGangOnce) {
  gangs_.Run(SpecWithData());
  gangs_.OnData(kAttempt, {.name = "data train", .error = "https://a/t.bin: HTTP status 404"});
  gangs_.OnData(kAttempt, {.name = "data test-set", .folder = "/copies/2"});
  ASSERT_THAT(ended_, testing::SizeIs(1));
  EXPECT_EQ(ended_[0].failure->kind, gang::FailureKind::kHost);
  EXPECT_EQ(released_, 1);
  EXPECT_THAT(recorded_.ran, IsEmpty());
}

gang::GangSpec SpecWithEnvironment() {
  gang::GangSpec spec = SpecWithCode(true);
  spec.program.command = {"/usr/bin/python3", "train.py"};
  spec.environment_files = gang::EnvironmentFiles{.python = "requirements.txt", .wheels = "wheels"};
  return spec;
}

TEST_F(FetchingGangsTest, BuildsTheEnvironmentFromTheCopyOfTheCode) {
  gangs_.Run(SpecWithEnvironment());
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de"));
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de", "/copies/c0de/tree/requirements.txt"));
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnEnvironment(kAttempt, {.folder = "/environments/1/venv"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  const gang::GangSpec& spec = recorded_.ran[0];
  EXPECT_EQ(spec.environment_files->root, "/copies/c0de/tree");
  EXPECT_EQ(spec.environment_files->wheels, "/copies/c0de/tree/wheels");
  EXPECT_EQ(spec.program.command[0], "/environments/1/venv/bin/python3");
  EXPECT_THAT(spec.program.environment,
              testing::Contains(testing::Pair("VIRTUAL_ENV", "/environments/1/venv")));
}

TEST_F(FetchingGangsTest, AnEnvironmentWithoutCodeIsBuiltAtOnce) {
  gang::GangSpec spec = SpecWithEnvironment();
  spec.code.reset();
  spec.environment_files = gang::EnvironmentFiles{.python = "/opt/requirements.txt"};
  gangs_.Run(spec);
  EXPECT_THAT(fetches_, ElementsAre("/opt/requirements.txt"));
  gangs_.OnEnvironment(kAttempt, {.folder = "/environments/1/venv"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_EQ(recorded_.ran[0].environment_files->root, "");
}

TEST_F(FetchingGangsTest, FilesOfTheHostNeedNotBeInTheCode) {
  gang::GangSpec spec = SpecWithEnvironment();
  spec.environment_files =
      gang::EnvironmentFiles{.python = "/opt/requirements.txt", .wheels = "/opt/wheels"};
  gangs_.Run(spec);
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  gangs_.OnEnvironment(kAttempt, {.folder = "/environments/1/venv"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_EQ(recorded_.ran[0].environment_files->python, "/opt/requirements.txt");
  EXPECT_EQ(recorded_.ran[0].environment_files->wheels, "/opt/wheels");
  EXPECT_EQ(recorded_.ran[0].environment_files->root, "");
}

TEST_F(FetchingGangsTest, AFailedBuildIsTheEnvironmentsFailureUnlessItIsTheHosts) {
  for (const bool is_host_fault : {false, true}) {
    gangs_.Run(SpecWithEnvironment());
    gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
    gangs_.OnEnvironment(kAttempt, {.error = "no such package", .is_host_fault = is_host_fault});
  }
  ASSERT_THAT(ended_, testing::SizeIs(2));
  EXPECT_EQ(ended_[0].failure->kind, gang::FailureKind::kEnvironment);
  EXPECT_EQ(ended_[0].failure->message, "no such package");
  EXPECT_EQ(ended_[1].failure->kind, gang::FailureKind::kHost);
  EXPECT_EQ(released_, 2);
}

TEST_F(FetchingGangsTest, AContainerGetsItsImageAndMountsTheCopies) {
  gang::GangSpec spec = SpecWithEnvironment();
  spec.environment_files.reset();
  spec.container = gang::Container{.image = "train:1", .engine = "any"};
  spec.data = {{.name = "train", .url = "http://host/train.npz", .variable = "ATTUNE_DATA_TRAIN"}};
  gangs_.Run(spec);
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de", "train", "train:1"));
  gangs_.OnData(kAttempt, {.name = "data train", .folder = "/data/ab"});
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnEnvironment(kAttempt, {.image = gang::ContainerImage{.id = "ab12"}});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  const gang::Container& container = *recorded_.ran[0].container;
  EXPECT_EQ(container.found->id, "ab12");
  EXPECT_THAT(container.read_only, ElementsAre("/copies/c0de", "/data/ab"));
  EXPECT_EQ(recorded_.ran[0].program.command[0], "/usr/bin/python3");
}

TEST_F(FetchingGangsTest, WithoutItsCodeNoEnvironmentIsBuilt) {
  gangs_.Run(SpecWithEnvironment());
  gangs_.OnCode(kAttempt, {.error = "the disk is full"});
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de"));
  gangs_.OnEnvironment(kAttempt, {.folder = "/environments/1/venv"});
  EXPECT_THAT(recorded_.ran, IsEmpty());
}

TEST_F(FetchingGangsTest, WaitsForTheCodeAndTheCheckpoint) {
  gang::GangSpec spec = Spec();
  spec.program.command = {"train"};
  spec.code = gang::Code{.files = {.code = "sha256:c0de"}};
  gangs_.Run(spec);
  EXPECT_THAT(fetches_, ElementsAre("sha256:c0de", "s1/3/1-9 sha256:abc"));
  gangs_.OnCheckpoint(kAttempt, {.folder = "/here/abc"});
  EXPECT_THAT(recorded_.ran, IsEmpty());
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  ASSERT_THAT(recorded_.ran, testing::SizeIs(1));
  EXPECT_EQ(recorded_.ran[0].resume->path, "/here/abc");
}

TEST_F(FetchingGangsTest, EndsOnceIfBothFetchesFail) {
  gang::GangSpec spec = Spec();
  spec.program.command = {"train"};
  spec.code = gang::Code{.files = {.code = "sha256:c0de"}};
  gangs_.Run(spec);
  gangs_.OnCode(kAttempt, {.error = "the disk is full"});
  gangs_.OnCheckpoint(kAttempt, {.error = "the disk is full"});
  EXPECT_THAT(ended_, testing::SizeIs(1));
  EXPECT_EQ(released_, 1);
}

TEST_F(FetchingGangsTest, KeepsCallsForAGangUntilItRuns) {
  gangs_.Run(SpecWithCode(false));
  gangs_.SetRendezvous(kAttempt, {.host = "10.0.0.1", .port = 1});
  gangs_.SetRendezvous(kAttempt, {.host = "10.0.0.1", .port = 2});
  gangs_.SetVerdict(kAttempt, {});
  gangs_.OnPeersFinished(kAttempt);
  EXPECT_THAT(recorded_.calls, IsEmpty());
  gangs_.OnCode(kAttempt, {.folder = "/copies/c0de"});
  EXPECT_THAT(recorded_.calls, ElementsAre("rendezvous", "verdict", "peers finished"));
}

}  // namespace
}  // namespace attune::agent

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

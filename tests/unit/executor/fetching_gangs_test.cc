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
    if (fetch) spec.fetch = gang::RemoteCheckpoint{.name = {1, 3, 1, 9}};
    return spec;
  }

  RecordedGangs recorded_;
  std::vector<std::string> fetches_;
  int released_ = 0;
  std::vector<gang::Ended> ended_;
  FetchingGangs gangs_{
      recorded_,
      {.fetch =
           [this](const auto&, const gang::RemoteCheckpoint& checkpoint,
                  const std::string& digest) {
             fetches_.push_back(gang::ToString(checkpoint.name) + " " + digest);
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
  gangs_.OnFetched(kAttempt, {.folder = "/here/abc"});
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
  gangs_.OnFetched(kAttempt, {.folder = "/here/abc"});
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
  gangs_.OnFetched(kAttempt, {.folder = "/here/abc"});  // a late result of the cancelled fetch
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
  gangs_.OnFetched(kAttempt, {.error = "the disk is full"});
  gangs_.Run(Spec());
  gangs_.OnFetched(kAttempt, {.error = "it is damaged", .is_final = true});
  ASSERT_THAT(ended_, testing::SizeIs(2));
  EXPECT_EQ(ended_[0].failure->kind, gang::FailureKind::kHost);
  EXPECT_EQ(ended_[0].failure->message, "the disk is full");
  EXPECT_EQ(ended_[1].failure->kind, gang::FailureKind::kExit);
}

}  // namespace
}  // namespace attune::agent

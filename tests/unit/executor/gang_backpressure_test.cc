#include <atomic>
#include <future>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

// A supervisor that may read only when the test allows it.
class GangBackpressureTest : public GangFixture {
 protected:
  void SetUp() override {
    StartSupervisor({.may_read = [this] {
      if (!was_asked_.exchange(true)) first_asked_.set_value();
      return has_capacity_.load();
    }});
  }
  void TearDown() override { supervisor_.reset(); }

  void WaitUntilAsked() {
    ASSERT_EQ(first_asked_.get_future().wait_for(kDeadline), std::future_status::ready);
  }

  GangSpec LaunchableWorker(std::vector<std::string> words) {
    words.insert(words.begin(), ATTUNE_TEST_LAUNCHABLE_WORKER);
    return Spec(std::move(words));
  }

  std::atomic<bool> has_capacity_ = false;
  std::atomic<bool> was_asked_ = false;
  std::promise<void> first_asked_;
};

TEST_F(GangBackpressureTest, ResumesReadingAWorkerWhenThereIsCapacity) {
  const GangSpec spec = PlainWorker({"report:1", "report:2", "hang"});
  supervisor_->Run(spec);
  WaitUntilAsked();
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 0);
  has_capacity_ = true;
  supervisor_->ResumeReading();
  EXPECT_EQ(facts_.Wait<Report>(spec.attempt, 2).value_or(Report{}).step, 2);
}

TEST_F(GangBackpressureTest, ResumesReadingADescendantWhenThereIsCapacity) {
  const GangSpec spec = PlainWorker({"below", "join:0/1", "claim", "report:1", "report:2", "hang"});
  supervisor_->Run(spec);
  WaitUntilAsked();
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 0);
  has_capacity_ = true;
  supervisor_->ResumeReading();
  EXPECT_EQ(facts_.Wait<Report>(spec.attempt, 2).value_or(Report{}).step, 2);
}

TEST_F(GangBackpressureTest, AWorkerThatIsNotReadDoesNotStall) {
  GangSpec unread = LaunchableWorker({"report:1", "hang"});
  unread.stall_timeout = std::chrono::milliseconds(100);
  supervisor_->Run(unread);
  WaitUntilAsked();
  GangSpec silent = LaunchableWorker({"hang"});
  silent.stall_timeout = std::chrono::milliseconds(200);
  EXPECT_EQ(RunToFailure(silent).kind, FailureKind::kStall);
  EXPECT_EQ(facts_.Count<Ended>(unread.attempt), 0);
  has_capacity_ = true;
  supervisor_->ResumeReading();
  EXPECT_TRUE(facts_.Wait<Report>(unread.attempt));
}

}  // namespace
}  // namespace attune::gang

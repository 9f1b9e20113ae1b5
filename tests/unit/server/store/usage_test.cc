#include <gmock/gmock.h>

#include "server/store/format_time.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The time of an event of the sample, and of events after it.
Time AtEvent(int64_t seq) { return Time{kSampleStart + seq * 1'000'000}; }

class UsageTest : public ReaderTest {
 protected:
  std::vector<TrialUse> Uses() { return reader_->Uses(SweepId(1)).value(); }
  HeldPage Held(int64_t from, int64_t to, size_t limit = 100) {
    return reader_->HeldSlots(AtEvent(from), AtEvent(to), "", limit).value();
  }
  std::vector<std::string> Attempts(const HeldPage& page) {
    std::vector<std::string> names;
    for (const HeldRow& row : page.attempts) names.push_back(ToString(row.attempt));
    return names;
  }
  void Assign(uint32_t trial, uint32_t number, uint64_t epoch,
              std::optional<CheckpointRef> resume = {}) {
    Add(AttemptAssigned{.attempt = {Trial(trial), number},
                        .epoch = Epoch(epoch),
                        .ranks = {{.executor = "box", .gpus = {0, 1}, .gpu_percent = 50},
                                  {.executor = "node-2", .gpus = {3}}},
                        .resume = std::move(resume)});
  }
};

TEST_F(UsageTest, ReadsTheAttemptsOfEachTrial) {
  const auto uses = Uses();
  ASSERT_THAT(uses, SizeIs(4));
  EXPECT_FALSE(uses[0].stopped);
  EXPECT_TRUE(uses[1].stopped);
  EXPECT_EQ(uses[1].last_step, Step(1));
  ASSERT_THAT(uses[0].attempts, SizeIs(2));
  const AttemptUse& first = uses[0].attempts[0];
  EXPECT_EQ(first.workers, 2u);
  EXPECT_DOUBLE_EQ(first.gpus, 1);
  EXPECT_EQ(first.begin, AtEvent(4));
  EXPECT_EQ(first.end, AtEvent(11));
  EXPECT_TRUE(first.broken);
  EXPECT_FALSE(first.resumed_from);
  EXPECT_EQ(first.last_step, Step(3));
  EXPECT_DOUBLE_EQ(first.seconds.value, 4.25);
  ASSERT_THAT(first.checkpoints, SizeIs(1));
  EXPECT_EQ(first.checkpoints[0].step, Step(3));
  EXPECT_EQ(first.checkpoints[0].time, AtEvent(9));
  const AttemptUse& second = uses[0].attempts[1];
  EXPECT_EQ(second.resumed_from, Step(3));
  EXPECT_EQ(second.last_step, Step(9));
  EXPECT_DOUBLE_EQ(second.seconds.value, 6);
}

TEST_F(UsageTest, ARunningAttemptHasTheNewestReportAndNoEnd) {
  Assign(3, 2, 6);
  Add(TrialReported{{Trial(3), 2}, {.step = Step(5), .seconds = Seconds(2.5)}});
  const AttemptUse running = Uses()[3].attempts.at(1);
  EXPECT_FALSE(running.end);
  EXPECT_DOUBLE_EQ(running.gpus, 2) << "two halves and a whole one";
  EXPECT_EQ(running.last_step, Step(5));
  EXPECT_DOUBLE_EQ(running.seconds.value, 2.5);
}

TEST_F(UsageTest, TheAttemptAfterACloneIsMarked) {
  const KeptCheckpoint donor{.attempt = 1, .ref = {Step(3), "/data/3", "sha256:03"}};
  Assign(2, 2, 6);
  Add(TrialReported{{Trial(2), 2}, {.step = Step(7), .seconds = Seconds(3)}});
  Add(TrialDecided{
      .attempt = {Trial(2), 2},
      .step = Step(7),
      .verdict = Verdict::Exploit({Trial(0), 1, Step(3)}, SampleConfig(0.3), {.rule = "pbt"}),
      .cloned = donor});
  Add(AttemptEnded{.attempt = {Trial(2), 2}, .outcome = Outcome::kPaused});
  Assign(2, 3, 7, donor.ref);
  const auto attempts = Uses()[2].attempts;
  ASSERT_THAT(attempts, SizeIs(3));
  EXPECT_FALSE(attempts[1].cloned);
  EXPECT_EQ(attempts[1].last_step, Step(7)) << "not the step of the donor's checkpoint";
  EXPECT_TRUE(attempts[2].cloned);
}

TEST_F(UsageTest, UsesOfAnUnknownSweepAreNotFound) {
  EXPECT_EQ(reader_->Uses(SweepId(9)).error().code, ErrorCode::kNotFound);
}

TEST_F(UsageTest, ListsAttemptsThatHeldSlotsNewestEndFirst) {
  EXPECT_THAT(Attempts(Held(0, 99)), ElementsAre("s1/3.1", "s1/2.1", "s1/1.1", "s1/0.2", "s1/0.1"));
  EXPECT_THAT(Attempts(Held(11, 20)), ElementsAre("s1/0.2"))
      << "the attempts that end or begin at a bound are outside";
  EXPECT_THAT(Attempts(Held(5, 6)), ElementsAre("s1/0.1"));
  EXPECT_THAT(Attempts(Held(36, 99)), IsEmpty());
}

TEST_F(UsageTest, AttemptsThatStillHoldSlotsComeFirst) {
  Assign(3, 2, 6);
  const HeldPage page = Held(36, 99);
  ASSERT_THAT(Attempts(page), ElementsAre("s1/3.2"));
  EXPECT_FALSE(page.attempts[0].end);
  EXPECT_EQ(page.attempts[0].outcome, "");
  EXPECT_EQ(page.attempts[0].sweep_name, "fashion-mnist");
  ASSERT_THAT(page.attempts[0].ranks, SizeIs(2));
  EXPECT_EQ(page.attempts[0].ranks[0].slot.gpu_percent, 50);
}

TEST_F(UsageTest, SelectsTheRanksOnAnExecutor) {
  Assign(3, 2, 6);
  const HeldPage page = reader_->HeldSlots(AtEvent(0), AtEvent(99), "node-2", 100).value();
  ASSERT_THAT(Attempts(page), ElementsAre("s1/3.2"));
  ASSERT_THAT(page.attempts[0].ranks, SizeIs(1));
  EXPECT_EQ(page.attempts[0].ranks[0].rank, 1);
}

TEST_F(UsageTest, AFullPageTellsThatMoreFollow) {
  EXPECT_FALSE(Held(0, 99, 5).more);
  const HeldPage page = Held(0, 99, 4);
  EXPECT_TRUE(page.more);
  EXPECT_THAT(page.attempts, SizeIs(4));
}

TEST_F(UsageTest, AttemptsOfDeletedSweepsAreMissing) {
  Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped"});
  Add(SweepDeleted{.sweep = SweepId(1)});
  EXPECT_THAT(Held(0, 99).attempts, IsEmpty());
}

TEST_F(UsageTest, ReadsWhenExecutorsJoined) {
  const auto joins = reader_->Joins().value();
  ASSERT_THAT(joins, SizeIs(1));
  EXPECT_EQ(joins[0].executor, "box");
  EXPECT_EQ(joins[0].joined, AtEvent(1));
  EXPECT_EQ(joins[0].lost, AtEvent(36));
}

TEST(FormatTime, IsReadBack) {
  for (const int64_t us : {int64_t{0}, kSampleStart, kSampleStart + 123'456}) {
    EXPECT_EQ(ParseTime(FormatTime(Time{us})), Time{us});
  }
  EXPECT_EQ(ParseTime("2026-11-21T10:00:00Z"), Time{kSampleStart});
  EXPECT_EQ(ParseTime("2026-11-21T10:00:00.5Z"), Time{kSampleStart + 500'000});
}

TEST(FormatTime, OtherTextsAreNoTimes) {
  for (const char* text :
       {"", "Z", "2026-11-21", "2026-11-21T10:00:00", "2026-11-21 10:00:00Z",
        "2026-13-21T10:00:00Z", "2026-02-30T10:00:00Z", "2026-11-21T24:00:00Z",
        "2026-11-21T10:60:00Z", "2026-11-21T10:00:00.Z", "2026-11-21T10:00:00.1234567Z",
        "2026-11-21T10:00:00.-5Z", "2026-11-21T10:00:00+01:00", "-026-11-21T10:00:00Z"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

}  // namespace
}  // namespace attune::server

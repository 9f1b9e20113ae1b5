#include "executor/logs/log_limit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "executor/gang/folders.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class LogLimitTest : public testing::Test {
 protected:
  // Appends lines of 64 bytes that begin with their offset.
  void Print(uint64_t bytes) {
    std::ofstream out(log_, std::ios::app | std::ios::binary);
    for (const uint64_t end = written_ + bytes; written_ < end; written_ += 64) {
      std::string line = std::to_string(written_);
      line.resize(63, '.');
      out << line << '\n';
    }
  }
  uint64_t BytesOnDisk() const {
    struct stat status {};
    stat(log_.c_str(), &status);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }
  void Trim(uint64_t unread = kAllIsRead) {
    const Status trimmed = limit_.Trim(unread);
    if (!trimmed.ok()) GTEST_SKIP() << "holes are unknown here: " << trimmed.error().message;
  }
  // The text that a follower reads from this offset on.
  std::string Follow(uint64_t offset) {
    std::string text;
    for (;;) {
      const LogPiece piece = ReadLog(log_, static_cast<int64_t>(offset), 100'000).value();
      text += piece.data;
      offset = piece.offset + piece.data.size();
      if (offset >= piece.file_bytes) return text;
      if (piece.data.empty()) ADD_FAILURE() << "no more data from offset " << offset;
      if (piece.data.empty()) return text;
    }
  }

  TempDir dir_;
  const std::filesystem::path log_ = dir_.path() / "rank-0.log";
  LogLimit limit_{log_, kLogLimitMin};
  uint64_t written_ = 0;
};

TEST_F(LogLimitTest, KeepsALogBelowItsLimit) {
  Print(kLogLimitMin - 64);
  Trim();
  EXPECT_EQ(limit_.room_bytes(), 64u);
  EXPECT_EQ(ReadLog(log_, 0, 10).value().gap, LogGap{});
  EXPECT_EQ(Follow(0).size(), written_);
}

TEST_F(LogLimitTest, RemovesTheMiddleAtTheLimitAndMarksTheGap) {
  Print(kLogLimitMin);
  Trim();
  EXPECT_LE(BytesOnDisk(), kLogLimitMin * 3 / 4);
  EXPECT_EQ(limit_.room_bytes(), kLogLimitMin / 4);
  const LogGap gap = ReadLog(log_, 0, 10).value().gap;
  EXPECT_EQ(gap, (LogGap{kLogLimitMin / 4, kLogLimitMin / 2}));

  const std::string text = Follow(0);
  EXPECT_THAT(text, StartsWith("0..."));
  EXPECT_THAT(text, AllOf(HasSubstr("\n[attune: 262144 bytes "),
                          HasSubstr("(--max-rank-log)]\n" + std::to_string(gap.end) + "..")));
  EXPECT_THAT(text, EndsWith("\n"));
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST_F(LogLimitTest, AFloodOfAnyLengthStaysWithinTheLimit) {
  for (int i = 0; i < 20; ++i) {
    Print(3 * kLogLimitMin);
    Trim();
    EXPECT_LE(BytesOnDisk(), kLogLimitMin);
  }
  EXPECT_LT(Follow(0).size(), kLogLimitMin);
  EXPECT_THAT(LogTail(log_), HasSubstr(std::to_string(written_ - 64)));
}

TEST_F(LogLimitTest, AFollowerContinuesAfterAGapThatOvertakesIt) {
  Print(kLogLimitMin);
  const uint64_t place = 300'000;  // in the middle
  Trim();
  const std::string text = Follow(place);
  EXPECT_THAT(text, StartsWith("\n[attune: 262144 bytes "));
  const LogPiece within = ReadLog(log_, kLogLimitMin / 2 - 6, 10).value();
  EXPECT_EQ(within.offset, kLogLimitMin / 2 - 6);
  EXPECT_EQ(within.data, "log)]\n" + std::to_string(kLogLimitMin / 2).substr(0, 4))
      << "an offset within the gap's line";
}

TEST_F(LogLimitTest, KeepsUnreadLines) {
  Print(2 * kLogLimitMin);
  Trim(kLogLimitMin / 4 + 1000);
  EXPECT_EQ(ReadLog(log_, 0, 10).value().gap, LogGap{});
  EXPECT_EQ(limit_.room_bytes(), 0u);
  Trim(kLogLimitMin);
  EXPECT_EQ(ReadLog(log_, 0, 10).value().gap.end, kLogLimitMin);
}

TEST_F(LogLimitTest, MeasuresATruncatedLogAgain) {
  Print(kLogLimitMin);
  Trim();
  std::filesystem::resize_file(log_, 100);
  Trim();
  EXPECT_EQ(limit_.room_bytes(), kLogLimitMin - 100);
  Print(kLogLimitMin);
  Trim();
  EXPECT_LT(BytesOnDisk(), kLogLimitMin);
}

TEST_F(LogLimitTest, AMissingLogIsNotAnError) { EXPECT_TRUE(limit_.Trim().ok()); }

class GangLogs : public GangFixture {
 protected:
  static constexpr uint64_t kPrinted = 40 * kLogLimitMin;
};

TEST_F(GangLogs, StayWithinTheirLimitWhileARankPrints) {
  StartSupervisor({.log_bytes_max = kLogLimitMin});
  const GangSpec spec = Script("head -c " + std::to_string(kPrinted) + " /dev/zero | tr '\\0' x");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  struct stat status {};
  ASSERT_EQ(stat(RankLog(spec.attempt_dir, 0).c_str(), &status), 0);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), kPrinted);
  EXPECT_LE(static_cast<uint64_t>(status.st_blocks) * 512, kLogLimitMin);
}

TEST_F(GangLogs, LoseNoReportThatWaitsToBeRead) {
  StartSupervisor({.log_bytes_max = kLogLimitMin});
  GangSpec spec = Script("echo loss=1; head -c " + std::to_string(kPrinted) +
                         " /dev/zero | tr '\\0' x; echo; echo loss=2");
  spec.program.report_pattern = "loss=(?P<loss>\\S+)";
  spec.milestone = 1;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 1));
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .milestone = 100});
  const auto second = facts_.Wait<Report>(spec.attempt, 2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->metrics.front().second, 2);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

}  // namespace
}  // namespace attune::gang

#include "pilots/hours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/result.h"
#include "pilots/fleet_folder.h"
#include "system/files.h"

namespace attune::pilots {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr Resources kNode{.cpus = 16, .gpus = 2};
constexpr double kHour = 3600;

class PilotHours : public testing::Test {
 protected:
  PilotHours() {
    std::string name = (std::filesystem::temp_directory_path() / "attune-hours-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~PilotHours() override { std::filesystem::remove_all(folder_); }

  HoursBook Open() { return *HoursBook::Open(folder_); }
  static Job RunningJob(int64_t ran, int nodes = 1) {
    return {.name = "p", .state = "RUNNING", .nodes = nodes, .ran = seconds(ran)};
  }
  static Host Node(int cpus_free, int gpus_free) {
    return {"p", kNode, {.cpus = cpus_free, .gpus = gpus_free}, "p"};
  }
  static void Count(HoursBook& book, const Job& job, const std::vector<Host>& hosts) {
    ASSERT_TRUE(book.Count({job}, hosts, kNode).ok());
  }

  std::filesystem::path folder_;
};

TEST_F(PilotHours, SplitsHeldHoursIntoInUseAndIdle) {
  HoursBook book = Open();
  Count(book, RunningJob(10), {});  // not joined yet: idle
  Count(book, RunningJob(20), {Node(16, 2)});
  Count(book, RunningJob(50), {Node(4, 1)});
  const Hours& hours = book.hours();
  EXPECT_DOUBLE_EQ(hours.held.nodes, 50 / kHour);
  EXPECT_DOUBLE_EQ(hours.held.cpus, 16 * 50 / kHour);
  EXPECT_DOUBLE_EQ(hours.held.gpus, 2 * 50 / kHour);
  EXPECT_DOUBLE_EQ(hours.in_use.nodes, 30 / kHour);
  EXPECT_DOUBLE_EQ(hours.in_use.cpus, 12 * 30 / kHour);
  EXPECT_DOUBLE_EQ(hours.in_use.gpus, 30 / kHour);
  EXPECT_NEAR(hours.idle().gpus, 70 / kHour, 1e-12);
  EXPECT_EQ(hours.unseen.nodes, 0);
}

TEST_F(PilotHours, CountsNodesThatHaveNotJoinedAsHeld) {
  HoursBook book = Open();
  Count(book, RunningJob(36, 4), {Node(0, 0)});
  EXPECT_DOUBLE_EQ(book.hours().held.gpus, 4 * 2 * 36 / kHour);
  EXPECT_DOUBLE_EQ(book.hours().in_use.gpus, 2 * 36 / kHour);
}

TEST_F(PilotHours, CountsNothingForAPendingJob) {
  HoursBook book = Open();
  Count(book, {.name = "p", .state = "PENDING"}, {});
  EXPECT_EQ(book.hours().held.nodes, 0);
}

TEST_F(PilotHours, CountsNoTimeTwiceAndLosesNoneAfterARestart) {
  {
    HoursBook book = Open();
    Count(book, RunningJob(10), {Node(0, 0)});
    Count(book, RunningJob(12), {Node(0, 0)});  // not written: too soon after the first
  }
  HoursBook next = Open();
  EXPECT_DOUBLE_EQ(next.hours().held.nodes, 10 / kHour);
  Count(next, RunningJob(20), {Node(0, 0)});
  EXPECT_DOUBLE_EQ(next.hours().held.nodes, 20 / kHour);
  EXPECT_DOUBLE_EQ(next.hours().in_use.gpus, 2 * 20 / kHour);
}

TEST_F(PilotHours, CountsUnobservedTimeAsUnseen) {
  HoursBook book = Open();
  Count(book, RunningJob(30), {Node(0, 0)});
  Count(book, RunningJob(30 + 61), {Node(0, 0)});
  const Hours& hours = book.hours();
  EXPECT_DOUBLE_EQ(hours.held.nodes, 91 / kHour);
  EXPECT_DOUBLE_EQ(hours.in_use.nodes, 30 / kHour);
  EXPECT_DOUBLE_EQ(hours.unseen.nodes, 61 / kHour);
  EXPECT_NEAR(hours.idle().nodes, 0, 1e-12);
  Count(book, RunningJob(91 + 60), {Node(0, 0)});
  EXPECT_DOUBLE_EQ(hours.unseen.nodes, 61 / kHour) << "a gap of a minute is observed";
}

TEST_F(PilotHours, KeepsTheSizeOfAPilotWhoseExecutorsLeft) {
  HoursBook book = Open();
  Count(book, RunningJob(10), {{"p", {.cpus = 64, .gpus = 8}, {.cpus = 64, .gpus = 8}, "p"}});
  Count(book, RunningJob(20), {});
  EXPECT_DOUBLE_EQ(book.hours().held.gpus, 8 * 20 / kHour);
}

TEST_F(PilotHours, KeepsHoursOfPilotsThatTheEngineNoLongerLists) {
  HoursBook book = Open();
  Count(book, RunningJob(36), {});
  ASSERT_TRUE(book.Count({}, {}, kNode).ok());
  ASSERT_TRUE(book.Write().ok());
  EXPECT_DOUBLE_EQ(Open().hours().held.nodes, 0.01);
}

TEST_F(PilotHours, RefusesADamagedFile) {
  ASSERT_TRUE(WriteWhole(folder_ / "hours.json", "{\"held\": 3}", kPrivate).ok());
  const auto book = HoursBook::Open(folder_);
  EXPECT_EQ(book.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(book.error().message, HasSubstr("hours.json"));
}

}  // namespace
}  // namespace attune::pilots

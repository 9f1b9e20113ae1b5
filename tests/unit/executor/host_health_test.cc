#include "executor/health/host_health.h"

#include <atomic>
#include <future>

#include "base/result.h"
#include "executor/health/health_watch.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

class HostHealthTest : public testing::Test {
 protected:
  HostHealthTest() { SetMemory(16 * kGiB, 8 * kGiB); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((dir_.path() / path).parent_path());
    gang::WriteFile(dir_.path() / path, text);
  }
  void SetMemory(uint64_t bytes, uint64_t free) {
    Write("proc/meminfo", "MemTotal: " + std::to_string(bytes / 1024) +
                              " kB\nMemFree: 0 kB\nMemAvailable: " + std::to_string(free / 1024) +
                              " kB\n");
  }
  HealthCheck Check(HealthLimits limits = {}) {
    return {{.data_dir = "/data",
             .limits = limits,
             .roots = {.proc = dir_.path() / "proc"},
             .read_disk = [this](const fs::path& folder) -> Result<FileSystem> {
               EXPECT_EQ(folder, "/data");
               if (!fault_.empty()) return Invalid(fault_);
               return disk_;
             }},
            GpuHealth(0, std::nullopt)};
  }
  static HostHealth Look(HealthCheck& check) {
    return check.Check([](const std::string&) {});
  }
  static std::string ProblemOf(HealthCheck& check) { return Look(check).problem; }

  gang::TempDir dir_;
  FileSystem disk_{
      .bytes = 500 * kGiB, .free_bytes = 100 * kGiB, .files = 1'000'000, .free_files = 900'000};
  std::string fault_;
};

TEST_F(HostHealthTest, AHealthyHostHasNoProblemAndReportsItsNumbers) {
  HealthCheck check = Check();
  const HostHealth health = Look(check);
  EXPECT_EQ(health.problem, "");
  EXPECT_EQ(health.disk_free_bytes, 100 * kGiB);
  EXPECT_EQ(health.memory_free_bytes, 8 * kGiB);
  EXPECT_FALSE(health.disk_is_short);
}

TEST_F(HostHealthTest, ReadsTheNumbersOfThisHost) {
  HealthCheck check({.data_dir = dir_.path()}, GpuHealth(0, std::nullopt));
  const HostHealth health = Look(check);
  EXPECT_GT(health.disk_free_bytes, 0u);
  EXPECT_GT(health.memory_free_bytes, 0u);
}

TEST_F(HostHealthTest, ADiskProblemLastsUntilAQuarterMoreIsFree) {
  HealthCheck check = Check();
  disk_.free_bytes = kGiB;
  EXPECT_EQ(ProblemOf(check), "");
  disk_.free_bytes = kGiB - 1;
  const std::string problem = ProblemOf(check);
  EXPECT_THAT(problem, AllOf(HasSubstr("(/data)"), HasSubstr("1.0 GiB")));
  disk_.free_bytes = kGiB + kGiB / 4 - 1;
  EXPECT_EQ(ProblemOf(check), problem) << "the text keeps the first number";
  disk_.free_bytes = kGiB + kGiB / 4;
  EXPECT_EQ(ProblemOf(check), "");
  disk_.free_bytes = 300 * kMiB;
  EXPECT_THAT(ProblemOf(check),
              AllOf(HasSubstr("300 MiB"), HasSubstr("(/data)"), HasSubstr("1.0 GiB")));
}

TEST_F(HostHealthTest, ADiskIsShortBeforeItIsAProblem) {
  HealthCheck check = Check();
  disk_.free_bytes = kGiB + kGiB / 4 - 1;
  EXPECT_TRUE(Look(check).disk_is_short);
  EXPECT_EQ(ProblemOf(check), "");
}

TEST_F(HostHealthTest, ASmallDiskNeedsTwoPercentFree) {
  HealthCheck check = Check();
  disk_.bytes = 50 * kMiB;
  disk_.free_bytes = kMiB;
  EXPECT_EQ(ProblemOf(check), "");
  disk_.free_bytes = kMiB / 2;
  EXPECT_THAT(ProblemOf(check),
              AllOf(HasSubstr("0.5 MiB"), HasSubstr("(/data)"), HasSubstr("1.0 MiB")));
}

TEST_F(HostHealthTest, UsesAConfiguredLimit) {
  HealthCheck check = Check({.disk_free_bytes = 200 * kGiB, .memory_free_bytes = 9 * kGiB});
  EXPECT_THAT(ProblemOf(check), AllOf(HasSubstr("100.0 GiB"), HasSubstr("(/data)"),
                                      HasSubstr("200.0 GiB; its memory "), HasSubstr(" 8.0 GiB"),
                                      EndsWith(" 9.0 GiB")));
}

TEST_F(HostHealthTest, ALimitOfZeroSwitchesTheCheckOff) {
  HealthCheck check = Check({.disk_free_bytes = 0, .memory_free_bytes = 0});
  SetMemory(16 * kGiB, 0);
  disk_ = {.bytes = 500 * kGiB, .files = 10'000};
  EXPECT_EQ(ProblemOf(check), "");
  fault_ = "Input/output error";
  EXPECT_EQ(ProblemOf(check), "");
}

TEST_F(HostHealthTest, ADiskWithFewFreeFilesIsAProblem) {
  HealthCheck check = Check();
  disk_.free_files = 9'999;
  EXPECT_THAT(ProblemOf(check),
              AllOf(HasSubstr("9999 more files"), HasSubstr("(/data)"), HasSubstr("10000")));
  disk_.free_files = 12'500;
  EXPECT_EQ(ProblemOf(check), "");
  disk_.files = disk_.free_files = 0;
  EXPECT_EQ(ProblemOf(check), "") << "a file system without a limit of files";
}

TEST_F(HostHealthTest, AnUnreadableDiskIsAProblemWhileItLasts) {
  HealthCheck check = Check();
  fault_ = "Input/output error";
  EXPECT_THAT(ProblemOf(check), EndsWith("(/data): Input/output error"));
  fault_.clear();
  EXPECT_EQ(ProblemOf(check), "");
}

TEST(FullDisk, IsAProblemUntilAQuarterMoreIsFree) {
  FullDisk disk;
  FullDisk::Clock::time_point now{};
  EXPECT_EQ(disk.Problem("/data", now), "");
  disk.OnCheck(0, now);
  EXPECT_EQ(disk.Problem("/data", now), "");
  disk.OnFull(8 * kMiB, now);
  const std::string problem = disk.Problem("/data", now);
  EXPECT_THAT(problem, AllOf(HasSubstr("full"), HasSubstr("8.0 MiB"), HasSubstr("(/data)")));
  disk.OnCheck(20 * kMiB, now - std::chrono::seconds(1));
  EXPECT_EQ(disk.Problem("/data", now), problem) << "the check began before the disk was full";
  now += std::chrono::seconds(1);
  disk.OnCheck(10 * kMiB - 1, now);
  EXPECT_EQ(disk.Problem("/data", now), problem);
  disk.OnCheck(10 * kMiB, now);
  EXPECT_EQ(disk.Problem("/data", now), "");
}

TEST(FullDisk, EndsAfterATimeoutForQuotas) {
  FullDisk disk;
  const FullDisk::Clock::time_point now{};
  disk.OnFull(100 * kGiB, now);
  const std::chrono::milliseconds tick(1);
  EXPECT_NE(disk.Problem("/data", now + FullDisk::kLasts - tick), "");
  EXPECT_EQ(disk.Problem("/data", now + FullDisk::kLasts), "");
}

TEST_F(HostHealthTest, AFullDiskIsAProblemAtOnceUnlessDisksAreNotChecked) {
  for (const bool judged : {true, false}) {
    HealthWatch watch(
        Check({.disk_free_bytes = judged ? std::nullopt : std::optional<uint64_t>(0)}),
        {.checked = [](const HostHealth&) {}});
    const auto now = gang::BootClock::now();
    watch.OnDiskFull(200 * kGiB, now);
    const std::string problem = watch.Latest(now).problem;
    if (judged) {
      EXPECT_THAT(problem, AllOf(HasSubstr("full"), HasSubstr("200.0 GiB"), HasSubstr("(/data)")));
    } else {
      EXPECT_EQ(problem, "");
    }
  }
}

TEST_F(HostHealthTest, AShortDiskNamesItsLargestFiles) {
  Write("data/sweeps/log", std::string(3 * kMiB, 'x'));
  const fs::path data = dir_.path() / "data";
  HealthCheck check({.data_dir = data,
                     .roots = {.proc = dir_.path() / "proc"},
                     .read_disk = [&](const fs::path&) -> Result<FileSystem> {
                       return FileSystem{.bytes = 50 * kMiB, .free_bytes = kMiB / 2};
                     }},
                    GpuHealth(0, std::nullopt));
  EXPECT_THAT(ProblemOf(check), AllOf(HasSubstr("0.5 MiB"), HasSubstr("1.0 MiB"),
                                      EndsWith(": " + data.string() + "/sweeps/log (3.0 MiB)")));
}

TEST_F(HostHealthTest, AWatchReportsTheGangThatFillsAShortDiskOnce) {
  std::promise<std::pair<gang::AttemptId, std::string>> told;
  std::promise<void> looked_again;
  std::atomic<int> ends = 0;
  int looks_since = 0;
  disk_ = {.bytes = 50 * kMiB, .free_bytes = kMiB / 2};
  const gang::AttemptId filler{.sweep = 1, .trial = 4, .attempt = 1};
  const gang::AttemptId other{.sweep = 1, .trial = 5, .attempt = 1};
  Write("filler/dump", std::string(3 * kMiB, 'x'));
  Write("other/weights", std::string(9 * kMiB, 'x'));
  fs::last_write_time(dir_.path() / "other/weights",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  HealthWatch watch(Check(),
                    {.checked =
                         [&](const HostHealth&) {
                           if (ends > 0 && ++looks_since == 3) looked_again.set_value();
                         },
                     .fills_disk =
                         [&](const gang::AttemptId& attempt, std::string message) {
                           if (++ends == 1) told.set_value({attempt, std::move(message)});
                         }},
                    std::chrono::milliseconds(1));
  watch.OnGangStarted(other, {dir_.path() / "other"});
  watch.OnGangStarted(filler, {dir_.path() / "filler"});
  auto first = told.get_future();
  ASSERT_EQ(first.wait_for(gang::kDeadline), std::future_status::ready);
  const auto [attempt, message] = first.get();
  EXPECT_EQ(attempt, filler);
  EXPECT_THAT(message,
              AllOf(HasSubstr("by 3.0 MiB "), HasSubstr("0.5 MiB"), HasSubstr("(/data)"),
                    HasSubstr("1.0 MiB"),
                    EndsWith(": " + (dir_.path() / "filler/dump").string() + " (3.0 MiB)")));
  ASSERT_EQ(looked_again.get_future().wait_for(gang::kDeadline), std::future_status::ready);
  EXPECT_EQ(ends, 1);
}

TEST_F(HostHealthTest, AMemoryProblemLastsUntilAQuarterMoreIsFree) {
  HealthCheck check = Check();
  SetMemory(16 * kGiB, 255 * kMiB);
  EXPECT_THAT(ProblemOf(check),
              AllOf(HasSubstr("memory"), HasSubstr("255 MiB"), HasSubstr("256 MiB")));
  SetMemory(16 * kGiB, 319 * kMiB);
  EXPECT_NE(ProblemOf(check), "");
  SetMemory(16 * kGiB, 320 * kMiB);
  EXPECT_EQ(ProblemOf(check), "");
}

TEST_F(HostHealthTest, UsesTheFreeMemoryOfACgroupIfThatIsLess) {
  HealthCheck check = Check();
  Write("proc/self/cgroup", "0::/jobs/one\n");
  Write("proc/self/mountinfo",
        "30 23 0:26 / " + (dir_.path() / "cgroup").string() + " rw - cgroup2 cgroup2 rw\n");
  Write("cgroup/jobs/one/memory.max", "max\n");
  Write("cgroup/jobs/memory.max", std::to_string(100 * kMiB) + "\n");
  Write("cgroup/jobs/memory.current", std::to_string(99 * kMiB) + "\n");
  Write("cgroup/jobs/memory.stat", "anon 1\ninactive_file " + std::to_string(40 * kMiB) +
                                       "\nactive_file " + std::to_string(9 * kMiB) +
                                       "\nslab_reclaimable " + std::to_string(1 * kMiB) + "\n");
  EXPECT_EQ(Look(check).memory_free_bytes, 51 * kMiB) << "caches are reclaimable";
  EXPECT_EQ(ProblemOf(check), "");
  Write("cgroup/jobs/memory.stat", "anon 1\n");
  EXPECT_THAT(ProblemOf(check),
              AllOf(HasSubstr("memory"), HasSubstr("1.0 MiB"), HasSubstr("2.0 MiB")));
  Write("cgroup/jobs/memory.current", std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(Look(check).memory_free_bytes, 0u);
}

TEST_F(HostHealthTest, UnknownMemoryIsNoProblem) {
  HealthCheck check = Check();
  Write("proc/meminfo", "MemTotal: 1000 kB\n");
  const HostHealth health = Look(check);
  EXPECT_EQ(health.problem, "");
  EXPECT_EQ(health.memory_free_bytes, 0u);
}

TEST_F(HostHealthTest, AWatchReportsEachCheck) {
  std::promise<HostHealth> first;
  int looks = 0;
  HealthWatch watch(Check({.disk_free_bytes = 200 * kGiB}),
                    {.checked = [&](const HostHealth& seen) {
                      if (++looks == 1) first.set_value(seen);
                    }});
  auto seen = first.get_future();
  ASSERT_EQ(seen.wait_for(gang::kDeadline), std::future_status::ready);
  EXPECT_THAT(seen.get().problem, HasSubstr("disk has 100.0 GiB "));
  EXPECT_THAT(watch.Latest(gang::BootClock::now()).problem, HasSubstr("disk has 100.0 GiB "));
}

TEST_F(HostHealthTest, AHangingDiskIsAProblem) {
  std::promise<void> hangs;
  std::promise<void> goes_on;
  HealthCheck check({.data_dir = "/data",
                     .read_disk = [&](const fs::path&) -> Result<FileSystem> {
                       hangs.set_value();
                       goes_on.get_future().wait();
                       return disk_;
                     }},
                    GpuHealth(0, std::nullopt));
  std::promise<void> checked;
  HealthWatch watch(std::move(check), {.checked = [&](const HostHealth&) { checked.set_value(); }},
                    std::chrono::hours(1));
  ASSERT_EQ(hangs.get_future().wait_for(gang::kDeadline), std::future_status::ready);
  EXPECT_EQ(watch.Latest(gang::BootClock::now()).problem, "");
  EXPECT_THAT(watch.Latest(gang::BootClock::now() + HealthWatch::kAnswerTimeout).problem,
              AllOf(HasSubstr("(/data)"), HasSubstr("30 s")));
  goes_on.set_value();
  ASSERT_EQ(checked.get_future().wait_for(gang::kDeadline), std::future_status::ready);
  EXPECT_EQ(watch.Latest(gang::BootClock::now() + HealthWatch::kAnswerTimeout).problem, "");
}

}  // namespace
}  // namespace attune::agent

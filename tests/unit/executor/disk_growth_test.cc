#include "executor/health/disk_growth.h"

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kFloor = 80 * kMiB;
constexpr gang::AttemptId kFirst{.sweep = 1, .trial = 1, .attempt = 1};
constexpr gang::AttemptId kSecond{.sweep = 1, .trial = 2, .attempt = 1};

class DiskGrowthTest : public testing::Test {
 protected:
  // Adds the disk use of both gangs at this time; all files are old.
  void Look(int64_t at_s, uint64_t first, uint64_t second) {
    growth_.Add({{kFirst, {.bytes = first}}, {kSecond, {.bytes = second}}},
                DiskGrowth::Clock::time_point(seconds(at_s)));
  }
  std::optional<gang::AttemptId> Filler() {
    const auto filler = growth_.TakeFiller(kFloor);
    return filler ? std::optional(filler->attempt) : std::nullopt;
  }

  DiskGrowth growth_;
};

TEST_F(DiskGrowthTest, FindsTheFastestGrowingGangNotTheLargest) {
  Look(0, 500 * kMiB, 10 * kMiB);
  Look(5, 512 * kMiB, 40 * kMiB);
  const auto filler = growth_.TakeFiller(kFloor);
  ASSERT_TRUE(filler);
  EXPECT_EQ(filler->attempt, kSecond);
  EXPECT_EQ(filler->grown_bytes, 30 * kMiB);
}

TEST_F(DiskGrowthTest, IgnoresGangsThatHardlyGrow) {
  Look(0, 0, 0);
  Look(5, 10 * kMiB - 1, 0);
  EXPECT_FALSE(Filler());
  Look(6, 10 * kMiB, 0);
  EXPECT_EQ(Filler(), kFirst);
}

TEST_F(DiskGrowthTest, ForgetsGrowthFromMoreThanAMinuteAgo) {
  Look(0, 0, 0);
  Look(5, 100 * kMiB, 0);
  Look(64, 100 * kMiB, 20 * kMiB);
  Look(66, 100 * kMiB, 20 * kMiB);
  EXPECT_EQ(Filler(), kSecond);
}

TEST_F(DiskGrowthTest, EndsAnotherGangOnlyIfItKeepsGrowing) {
  Look(0, 0, 0);
  Look(5, 30 * kMiB, 20 * kMiB);
  EXPECT_EQ(Filler(), kFirst);
  Look(6, 30 * kMiB, 20 * kMiB);
  EXPECT_FALSE(Filler());
  Look(7, 30 * kMiB, 40 * kMiB);
  EXPECT_EQ(Filler(), kSecond);
}

TEST_F(DiskGrowthTest, UsesModificationTimesForGrowthBeforeTheFirstMeasurement) {
  growth_.Add({{kFirst, {.bytes = 90 * kMiB, .new_bytes = 5 * kMiB}},
               {kSecond, {.bytes = 30 * kMiB, .new_bytes = 30 * kMiB}}},
              {});
  EXPECT_EQ(Filler(), kSecond);
}

TEST(MeasureDiskUse, SumsFileSizesAndListsTheLargestFiles) {
  const gang::TempDir dir;
  fs::create_directories(dir.path() / "a/b");
  const auto write = [&](const char* name, size_t bytes) {
    gang::WriteFile(dir.path() / name, std::string(bytes, 'x'));
  };
  write("a/small", 4096);
  write("a/b/large", 2 * kMiB);
  write("a/middle", kMiB);
  write("elsewhere", kMiB);
  fs::resize_file(dir.path() / "a/small", 100 * kMiB);  // with a hole
  fs::last_write_time(dir.path() / "a/middle",
                      fs::file_time_type::clock::now() - 2 * DiskGrowth::kPeriod);
  fs::create_symlink(dir.path() / "elsewhere", dir.path() / "a/link");

  const DiskUse use = MeasureDiskUse({dir.path() / "a", dir.path() / "absent"}, 100, 2);
  EXPECT_GE(use.bytes, 3 * kMiB);
  EXPECT_LT(use.bytes, 4 * kMiB);
  EXPECT_GE(use.new_bytes, 2 * kMiB);
  EXPECT_LT(use.new_bytes, 3 * kMiB);
  EXPECT_THAT(LargestFiles(use),
              testing::EndsWith(": " + (dir.path() / "a/b/large").string() + " (2.0 MiB), " +
                                (dir.path() / "a/middle").string() + " (1.0 MiB)"));
  EXPECT_EQ(LargestFiles({}), "");
}

TEST(MeasureDiskUse, MeasuresOnlyUpToTheFileLimit) {
  const gang::TempDir dir;
  for (int i = 0; i < 5; ++i)
    gang::WriteFile(dir.path() / std::to_string(i), std::string(4096, 'x'));
  EXPECT_EQ(MeasureDiskUse({dir.path()}, 3, 10).largest.size(), 3u);
}

}  // namespace
}  // namespace attune::agent

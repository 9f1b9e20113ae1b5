#include <gmock/gmock.h>

#include "executor/agent/backoff.h"
#include "executor/agent/name_lock.h"
#include "executor/health/host_resources.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using gang::TempDir;
using testing::HasSubstr;

class DetectResourcesTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((dir_.path() / path).parent_path());
    gang::WriteFile(dir_.path() / path, text);
  }

  // Mounts the folder `root` of the cgroup hierarchy at `cgroup`.
  void Mount(const std::string& root) {
    Write("proc/self/mountinfo", "30 23 0:26 " + root + " " + (dir_.path() / "cgroup").string() +
                                     " rw - cgroup2 cgroup2 rw\n");
  }

  HostResources Detect() {
    return DetectResources({.proc = dir_.path() / "proc", .dev = dir_.path() / "dev"});
  }

  TempDir dir_;
};

TEST_F(DetectResourcesTest, FindsResourcesOfThisHost) {
  const HostResources resources = DetectResources();
  EXPECT_GE(resources.cpus, 1u);
  EXPECT_GT(resources.memory_bytes, 0u);
}

TEST_F(DetectResourcesTest, MemoryIsLimitedByACgroup) {
  Write("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(Detect().memory_bytes, 1024u * 1024);
  Mount("/");
  Write("proc/self/cgroup", "0::/jobs/one\n");
  Write("cgroup/jobs/one/memory.max", "max\n");
  EXPECT_EQ(Detect().memory_bytes, 1024u * 1024);
  Write("cgroup/jobs/memory.max", "5000\n");
  EXPECT_EQ(Detect().memory_bytes, 5000u);
}

TEST_F(DetectResourcesTest, ReadsLimitsIfPartOfTheHierarchyIsMounted) {
  Mount("/jobs");
  Write("proc/self/cgroup", "0::/jobs/one\n");
  Write("cgroup/one/memory.max", "5000\n");
  Write("cgroup/one/cpu.max", "100000 100000\n");
  EXPECT_EQ(Detect().memory_bytes, 5000u);
  EXPECT_EQ(Detect().cpus, 1u);
  Write("proc/self/cgroup", "0::/jobs\n");
  EXPECT_EQ(Detect().memory_bytes, 0u);
  Write("cgroup/memory.max", "4000\n");
  EXPECT_EQ(Detect().memory_bytes, 4000u);
  Write("proc/self/cgroup", "0::/jobs2/one\n");
  EXPECT_EQ(Detect().memory_bytes, 0u) << "the cgroup of another process";
}

TEST_F(DetectResourcesTest, RoundsTheCpuTimeLimitDownToWholeCpus) {
  Mount("/");
  Write("proc/self/cgroup", "0::/jobs/one\n");
  Write("cgroup/jobs/one/cpu.max", "190000 100000\n");
  EXPECT_EQ(Detect().cpus, 1u);
  Write("cgroup/jobs/one/cpu.max", "20000 100000\n");
  EXPECT_EQ(Detect().cpus, 1u);
}

TEST_F(DetectResourcesTest, CountsGpusFromTheDriverOrTheDevices) {
  EXPECT_EQ(Detect().gpus, 0u);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "null"}) {
    Write(std::string("dev/") + name, "");
  }
  EXPECT_EQ(Detect().gpus, 3u);
  Write("proc/driver/nvidia/gpus/0000:01:00.0/information", "");
  EXPECT_EQ(Detect().gpus, 1u);
}

TEST_F(DetectResourcesTest, CountsTheGpusThatTheExecutorMayUse) {
  setenv("CUDA_VISIBLE_DEVICES", "4,5", 1);
  EXPECT_EQ(Detect().gpus, 0u) << "a variable makes no GPUs";
  for (int gpu = 0; gpu < 8; ++gpu) Write("dev/nvidia" + std::to_string(gpu), "");
  EXPECT_EQ(Detect().gpus, 2u);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(Detect().gpus, 0u);
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(Detect().gpus, 8u);
}

TEST(ExecutorNameLock, IsHeldUntilItsOwnerIsGone) {
  const TempDir dir;
  {
    const auto first = LockName(dir.path(), "a", 0);
    ASSERT_TRUE(first.ok());
    EXPECT_THAT(LockName(dir.path(), "a", 0).error().message, HasSubstr(std::to_string(getpid())));
    EXPECT_TRUE(LockName(dir.path(), "b", 0).ok());
  }
  EXPECT_TRUE(LockName(dir.path(), "a", 0).ok());
}

TEST(ExecutorNameLock, StartTimesOfANameIncreaseWhateverTheClockSays) {
  gang::TempDir dir;
  const auto start = [&](const std::string& name, int64_t wall_us) {
    return LockName(dir.path(), name, wall_us).value().started_us;
  };
  EXPECT_EQ(start("a", 1000), 1000);
  EXPECT_EQ(start("a", 2000), 2000);
  EXPECT_EQ(start("a", 500), 2001);
  EXPECT_EQ(start("b", 500), 500);
  gang::WriteFile(dir.path() / "executors" / "a" / "started", "what a crash left of it");
  EXPECT_EQ(start("a", 3000), 3000);
}

TEST(ExecutorNameLock, RefusesANameThatIsNotAFolderName) {
  const TempDir dir;
  for (const char* name : {"", "a/b", "..", ".hidden"}) {
    EXPECT_FALSE(LockName(dir.path(), name, 0).ok()) << name;
  }
}

TEST(Backoff, GrowsToItsLimitAndResets) {
  Backoff backoff(1);
  EXPECT_LE(backoff.Next(), Backoff::kFirst);
  for (int i = 0; i < 20; ++i) {
    const auto pause = backoff.Next();
    EXPECT_GE(pause, Backoff::kFirst);
    EXPECT_LE(pause, Backoff::kMax);
  }
  EXPECT_GE(backoff.Next(), Backoff::kMax / 2);
  backoff.Reset();
  EXPECT_LE(backoff.Next(), Backoff::kFirst);
}

}  // namespace
}  // namespace attune::agent

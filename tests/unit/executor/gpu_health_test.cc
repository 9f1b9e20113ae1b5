#include "executor/health/gpu_health.h"

#include <gmock/gmock.h>
#include <stdlib.h>

namespace attune::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Names = std::vector<std::string>;

auto IsLost(const std::string& gpu) {
  return AllOf(StartsWith("its GPU " + gpu + " "), EndsWith(" lost"));
}

class GpuHealthTest : public testing::Test {
 protected:
  ~GpuHealthTest() override { unsetenv("FAKE_NVML"); }

  static void SetStates(const char* words) { setenv("FAKE_NVML", words, 1); }
  static GpuHealth Watch(uint32_t gpus, std::optional<Names> given = std::nullopt) {
    return {gpus, std::move(given), ATTUNE_TEST_FAKE_NVML};
  }
};

TEST_F(GpuHealthTest, HasNoProblemsWithoutTheLibrary) {
  GpuHealth gpus(2, std::nullopt, "libattune-no-such-library.so.1");
  EXPECT_THAT(gpus.Check(), IsEmpty());
  EXPECT_THAT(gpus.Check(), IsEmpty());
}

TEST_F(GpuHealthTest, HasNoProblemsWithoutADriver) {
  GpuHealth gpus = Watch(2);
  EXPECT_THAT(gpus.Check(), IsEmpty());
  EXPECT_THAT(gpus.Check(), IsEmpty());
}

TEST_F(GpuHealthTest, ReadsTheDriversVersionAndUsableGpus) {
  SetStates("ok hidden ok");
  const GpuDriver driver = ReadGpuDriver(ATTUNE_TEST_FAKE_NVML);
  EXPECT_TRUE(driver.has_library);
  EXPECT_EQ(driver.fault, "");
  EXPECT_EQ(driver.version, "535.104.05");
  EXPECT_EQ(driver.gpus, 2u);
  EXPECT_THAT(driver.models, ElementsAre("NVIDIA Fake 0", "NVIDIA Fake 2"));
}

TEST_F(GpuHealthTest, ReportsADriverThatIsNotLoaded) {
  const GpuDriver driver = ReadGpuDriver(ATTUNE_TEST_FAKE_NVML);
  EXPECT_TRUE(driver.has_library);
  EXPECT_NE(driver.fault, "");
}

TEST_F(GpuHealthTest, DistinguishesAMissingLibraryFromABrokenOne) {
  EXPECT_FALSE(ReadGpuDriver("libattune-no-such-library.so.1").has_library);
  EXPECT_TRUE(ReadGpuDriver("/proc/self/exe").has_library);  // a file, but not a library
}

TEST_F(GpuHealthTest, HealthyGpusAreNoProblem) {
  SetStates("ok errors=0");
  GpuHealth gpus = Watch(2);
  EXPECT_THAT(gpus.Check(), IsEmpty());
  EXPECT_THAT(gpus.Check(), IsEmpty());
}

TEST_F(GpuHealthTest, ALostGpuStaysAProblem) {
  SetStates("ok ok ok");
  GpuHealth gpus = Watch(3);
  EXPECT_THAT(gpus.Check(), IsEmpty());
  SetStates("ok lost ok");
  EXPECT_THAT(gpus.Check(), ElementsAre(IsLost("1")));
  SetStates("ok ok ok");
  EXPECT_THAT(gpus.Check(), ElementsAre(IsLost("1")));
}

TEST_F(GpuHealthTest, CountsErrorsSinceTheStartAndKeepsTheText) {
  SetStates("errors=4");
  GpuHealth gpus = Watch(1);
  EXPECT_THAT(gpus.Check(), IsEmpty()) << "the errors existed before the start";
  SetStates("errors=7");
  const auto found = ElementsAre(AllOf(StartsWith("its GPU 0 "), HasSubstr(" 3 ")));
  EXPECT_THAT(gpus.Check(), found);
  SetStates("errors=9");
  EXPECT_THAT(gpus.Check(), found);
}

TEST_F(GpuHealthTest, CountsErrorsFromAResetOfTheCounter) {
  SetStates("errors=4");
  GpuHealth gpus = Watch(1);
  gpus.Check();
  SetStates("errors=0");
  EXPECT_THAT(gpus.Check(), IsEmpty());
  SetStates("errors=1");
  EXPECT_THAT(gpus.Check(), ElementsAre(AllOf(StartsWith("its GPU 0 "), HasSubstr(" 1 "))));
}

TEST_F(GpuHealthTest, MemoryThatNeedsRepairIsAProblemFromTheStart) {
  SetStates("failed pending retiring");
  EXPECT_THAT(
      Watch(3).Check(),
      ElementsAre(AllOf(StartsWith("its GPU 0 "), HasSubstr("remap")),
                  AllOf(StartsWith("its GPU 1 "), HasSubstr("reset"), HasSubstr("remap")),
                  AllOf(StartsWith("its GPU 2 "), HasSubstr("reset"), HasSubstr("retire"))));
}

TEST_F(GpuHealthTest, AGpuThatDoesNotAnswerIsAProblemOnlyIfItLasts) {
  SetStates("silent");
  GpuHealth gpus = Watch(1);
  EXPECT_THAT(gpus.Check(), IsEmpty());
  SetStates("ok");
  EXPECT_THAT(gpus.Check(), IsEmpty());
  SetStates("silent");
  EXPECT_THAT(gpus.Check(), IsEmpty());
  EXPECT_THAT(gpus.Check(),
              ElementsAre(AllOf(StartsWith("its GPU 0 "), EndsWith("(NVML: Unknown Error)"))));
}

TEST_F(GpuHealthTest, WatchesOnlyTheGpusThatGangsUse) {
  SetStates("lost ok ok");
  EXPECT_THAT(Watch(0).Check(), IsEmpty());
  EXPECT_THAT(Watch(2, Names{"1", "2"}).Check(), IsEmpty());
  EXPECT_THAT(Watch(1, Names{"2", "0"}).Check(), IsEmpty());
  EXPECT_THAT(Watch(2, Names{"2", "0"}).Check(), ElementsAre(IsLost("0")));
}

TEST_F(GpuHealthTest, IgnoresGpusOfOtherJobs) {
  SetStates("hidden ok lost");
  EXPECT_THAT(Watch(2).Check(), ElementsAre(IsLost("1")));
}

TEST_F(GpuHealthTest, AcceptsGpuIdentifiers) {
  SetStates("ok lost ok");
  EXPECT_THAT(Watch(1, Names{"GPU-11"}).Check(), ElementsAre(IsLost("GPU-11")));
  EXPECT_THAT(Watch(1, Names{"MIG-a"}).Check(), ElementsAre(IsLost("MIG-a")));
  EXPECT_THAT(Watch(3, Names{"GPU-9", "MIG-b", "7"}).Check(), IsEmpty())
      << "NVML knows none of these names";
}

}  // namespace
}  // namespace attune::agent

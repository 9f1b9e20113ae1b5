// Tests that need GPUs. They are skipped without a GPU, and if the program was built without CUDA.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    while (std::filesystem::exists("/dev/nvidia" + std::to_string(gpus_))) ++gpus_;
    if (gpus_ == 0) GTEST_SKIP() << "this machine has no GPU";
    if (Train(1).output.find("built without CUDA") != std::string::npos) {
      GTEST_SKIP() << "built without CUDA: the preset `cuda` has it";
    }
  }

  // The program of docs/reference/cpp-sdk.md, with one worker for each GPU.
  static Ended Train(int workers) {
    return RunByHand({"--device", "cuda", "--workers", std::to_string(workers), "--max-step", "2"},
                     {{"GANG_PROGRAM_FORM", "hooked"}, {"NCCL_SOCKET_IFNAME", "lo"}});
  }

  int gpus_ = 0;
};

TEST_F(Cuda, AWorkerTrainsOnItsGpu) {
  const Ended ended = Train(1);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("step 2  loss"), HasSubstr("after step 2")));
}

TEST_F(Cuda, WorkersTrainOverNccl) {
  if (gpus_ < 2) GTEST_SKIP() << "this machine has one GPU";
  const Ended ended = Train(2);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST_F(Cuda, AMissingGpuFailsTheRank) {
  EXPECT_THAT(Train(gpus_ + 1).output,
              AllOf(HasSubstr("rank " + std::to_string(gpus_) + " failed"),
                    HasSubstr("device cuda:" + std::to_string(gpus_) + ": ")));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing

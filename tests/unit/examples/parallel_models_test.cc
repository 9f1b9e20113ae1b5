#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/scratch_folder.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs the program on synthetic images and returns its output and exit code.
std::string RunProgram(const std::string& options) {
  const std::string command =
      "ATTUNE_DATA_DIR=/nowhere '" PARALLEL_MODELS_PROGRAM "' " + options + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> bytes;
  while (const std::size_t count = fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), count);
  }
  return output + "exit code " + std::to_string(WEXITSTATUS(pclose(pipe))) + "\n";
}

double AverageOfLastRound(const std::string& output) {
  const std::string before = "of the average ";
  return std::stod(output.substr(output.rfind(before) + before.size()));
}

TEST(ParallelModels, LearnTheSameInEachRunAndPrepareImagesOnce) {
  const attune::testing::ScratchFolder folder;
  const std::string options =
      "--workers 2 --rounds 3 --steps 40 --images 1800 --folder '" + folder.path() + "'";
  const std::string first = RunProgram(options);
  ASSERT_THAT(first, AllOf(HasSubstr("round 3  accuracy "), HasSubstr("exit code 0\n")));
  EXPECT_GT(AverageOfLastRound(first), 0.5);  // chance is 0.1
  const std::string prepared = "preparing 1800 images\n";
  EXPECT_THAT(first.substr(first.find(prepared) + 1), Not(HasSubstr(prepared)));
  const std::string second = RunProgram(options);
  EXPECT_THAT(second, Not(HasSubstr(prepared)));
  EXPECT_EQ(second, first.substr(first.find("round 1")));
}

TEST(ParallelModels, PrintTheUsageForAWrongCommandLine) {
  EXPECT_THAT(RunProgram("--epochs 3"), AllOf(HasSubstr("usage: "), HasSubstr("exit code 1\n")));
}

}  // namespace

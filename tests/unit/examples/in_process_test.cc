#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/scratch_folder.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string RunProgram(const std::string& arguments) {
  FILE* pipe = popen(("'" IN_PROCESS_PROGRAM "' " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> bytes;
  while (const std::size_t count = fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), count);
  }
  return output + "exit code " + std::to_string(WEXITSTATUS(pclose(pipe))) + "\n";
}

std::string TextFrom(const std::string& output, const std::string& word) {
  return output.substr(std::min(output.find(word), output.size()));
}

TEST(InProcess, ASecondRunContinuesLikeASingleRun) {
  const attune::testing::ScratchFolder folder;
  const std::string whole = RunProgram("'" + folder.path() + "/whole' 40");
  EXPECT_THAT(whole, AllOf(HasSubstr("trial 39  loss "), HasSubstr("best: trial "),
                           HasSubstr("  valve = flexible\n"), HasSubstr("exit code 0\n")));
  const std::string parts = "'" + folder.path() + "/parts' ";
  RunProgram(parts + "25");
  const std::string second = RunProgram(parts + "15");
  EXPECT_EQ(second, TextFrom(whole, "trial 25  "));
}

TEST(InProcess, RefusesAFileOfAnotherKind) {
  const attune::testing::ScratchFolder folder;
  const std::string file = "'" + folder.path() + "/file'";
  RunProgram(file + " 3");
  ASSERT_EQ(std::system(("echo something else > " + file).c_str()), 0);
  EXPECT_THAT(RunProgram(file + " 3"), AllOf(HasSubstr("tpe"), HasSubstr("exit code 1\n")));
}

}  // namespace

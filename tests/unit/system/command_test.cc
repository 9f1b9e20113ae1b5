#include "system/command.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/result.h"

namespace attune {
namespace {

TEST(SystemCommands, ReturnOutputAndExitCode) {
  SystemCommands system;
  const auto ran = system.Run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(ran->exit_code, 3);
  EXPECT_EQ(ran->out, "out\n");
  EXPECT_EQ(ran->err, "err\n");
  EXPECT_EQ(system.Run({"sh", "-c", "kill -9 $$"})->exit_code, 137);
  EXPECT_EQ(system.Run({"no-such-program-here"}).error().code, ErrorCode::kNotFound);
}

TEST(SystemCommands, EndStopsTheRunningProgram) {
  SystemCommands system(std::chrono::hours(1));
  std::thread ending([&] { system.End(); });
  const auto ran = system.Run({"sleep", "1000"});
  ending.join();
  EXPECT_TRUE(!ran.ok() || ran->exit_code == 143) << "ended before or after the start";
  EXPECT_EQ(system.Run({"true"}).error().code, ErrorCode::kUnavailable);
}

TEST(SystemCommands, EndsAProgramThatHangs) {
  SystemCommands system(std::chrono::milliseconds(50));
  EXPECT_EQ(system.Run({"sleep", "1000"}).error().code, ErrorCode::kUnavailable);
}

TEST(SystemCommands, RunInAnotherEnvironmentAndFolder) {
  SystemCommands system({.environment = {{"ONLY=this", "PATH=/bin"}}, .working_directory = "/usr"});
  const auto ran = system.Run({"sh", "-c", "echo $ONLY $HOME; pwd -P"});
  EXPECT_EQ(ran->out, "this\n/usr\n");
}

TEST(SystemCommands, EndAProgramThatWritesTooMuch) {
  SystemCommands system({.output_bytes_max = 10});
  EXPECT_EQ(system.Run({"sh", "-c", "printf 12345; printf 67890 >&2"})->exit_code, 0);
  EXPECT_EQ(system.Run({"cat", "/dev/zero"}).error().code, ErrorCode::kUnavailable);
}

TEST(SystemCommands, LimitMemory) {
  SystemCommands system({.memory_bytes_max = uint64_t{1} << 30});
  EXPECT_EQ(system.Run({"sh", "-c", "ulimit -v; ulimit -H -v"})->out, "1048576\n1048576\n");
}

}  // namespace
}  // namespace attune
